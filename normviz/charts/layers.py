"""One quantity in every layer at one step, all lanes on one axis: at the cursor of a duel, or at step 0. The
player calls this chart "bars".

Points joined by lines: a log axis has no zero from which the length of a bar could be read. Zero, values off
the axis and numbers that are not finite have marks of their own, never a gap: Vega sorts the rows into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np

from normviz.catalog.probes import PROBES
from normviz.formats import number
from normviz.runs import Recording
from normviz.runs.lane import Lane, divergences
from normviz.runs.recording import LayerValues

from .base import (
    FINITE,
    TEXT_SIZE,
    Rows,
    Spec,
    compiled,
    js,
    named,
    on_axis,
    rows,
    tick_label,
    value_scale,
)
from .palette import RED, LaneStyle, ink, lane_color, lane_dash, styles_of
from .scale import Domain, quantised_domain

HEIGHT = 184
NOTE_BELOW = 50  # pixels under the axis: the row of the axis title
REACH_UP = 300  # decades before the first step: growth by a factor a layer is the finding there
EDGE = 9  # pixels between the ends of the axis and those of the plot: points there are whole
FEW = 32  # layers of which each has a point: in deeper models they would run into one another
RINGS = (30, 80, 160, 270)
"""Areas of the lanes' points: a dot, and rings round it, so that equal values do not hide one another."""
SMALL_LOSS = 1e-3  # below it small gradients go with success, not with vanishing


def chart(lanes: Sequence[Lane], probe: str) -> Spec:
    """The lines at step 0, ready for st.vega_lite_chart."""
    record, depth = PROBES[probe], max(lane.recording.depth for lane in lanes)
    values = [lane.recording.layers(probe) for lane in lanes]
    domain = quantised_domain(record, values, reach_up=REACH_UP)
    constant = spec(styles_of(lanes), tuple(lane.label for lane in lanes), probe, depth, domain)
    return {**constant, "datasets": {**rows_at(lanes, probe, 0), "note": []}}


def spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    probe: str,
    depth: int,
    domain: Domain,
    dark: bool = False,
    row: str = "layer",
) -> Spec:
    """Vega-Lite dict of the points without their data; a shallow copy of a cached one. `row` names one."""
    return dict(_spec(styles, labels, probe, depth, domain, dark, row))


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    probe: str,
    depth: int,
    domain: Domain,
    dark: bool,
    row: str,
) -> Spec:
    record = PROBES[probe]
    place = _place(record.first_layer, depth, row)
    scale = value_scale(domain)
    scale.padding = EDGE
    y = alt.Y(
        "inside:Q",
        scale=scale,
        axis=alt.Axis(title=record.axis_label, values=domain.ticks(), labelExpr=tick_label(domain)),
    )
    color = lane_color(styles, labels)
    dash = lane_dash(styles, labels)
    layers = [
        *_values(place, y, color, dash, domain, row, depth <= FEW),
        *_outside(place, color, domain),
        named("note")
        .mark_text(align="right", baseline="middle", fontSize=TEXT_SIZE, color=ink(dark))
        .encode(
            x=alt.XValue(alt.ExprRef("width")),
            y=alt.YValue(alt.ExprRef(f"height + {NOTE_BELOW}")),
            text=alt.Text("text:N"),
        ),
    ]
    return compiled(layers, HEIGHT)


def _place(first: int, depth: int, row: str) -> dict[str, Any]:
    """The position of a layer on the axis."""
    scale = alt.Scale(domain=[first - 0.5, depth + 0.5], nice=False, zero=False)
    title = f"{row}, from input to output" if row == "layer" else row
    axis = alt.Axis(title=title, grid=False, format="d", tickMinStep=1)
    return {"x": alt.X("layer:Q", scale=scale, axis=axis)}


def _values(
    place: dict[str, Any],
    y: alt.Y,
    color: alt.Color,
    dash: alt.StrokeDash,
    domain: Domain,
    row: str,
    has_points: bool,
) -> list[alt.Chart]:
    words = [
        alt.Tooltip("name:N", title="lane"),
        alt.Tooltip("layer:Q", title=row),
        alt.Tooltip("inside:Q", title="value", format=".3~g"),
    ]
    drawable = named("bars").transform_filter(on_axis(domain.scale == "log"))
    at = drawable.transform_calculate(
        inside=f"clamp(datum.value, {js(domain.lo)}, {js(domain.hi)})"
    )
    at = at.encode(**place, y=y, color=color, tooltip=words)
    shown: dict[str, Any] = {"clip": True, "opacity": int(has_points)}
    first, others = (at.transform_filter(f"datum.lane {rule} 0") for rule in ("===", ">"))
    return [
        at.mark_line(clip=True).encode(strokeDash=dash),
        first.mark_point(**shown, filled=True, size=RINGS[0]),
        others.mark_point(**shown, strokeWidth=1.5, size=alt.ExprRef(f"{[*RINGS]}[datum.lane]")),
    ]


def _outside(place: dict[str, Any], color: alt.Color, domain: Domain) -> list[alt.Chart]:
    """ "0" on the lower edge where a log axis has no place for a value; triangles off it; a red cross
    for a value that is not finite."""
    lo, hi, log = js(domain.lo), js(domain.hi), domain.scale == "log"

    def only(rule: str) -> alt.Chart:
        return named("bars").transform_filter(rule)

    zero = only(f"{FINITE} && datum.value <= 0" if log else "false")
    low, high = (only(f"{on_axis(log)} && datum.value {end}") for end in (f"< {lo}", f"> {hi}"))
    bad = only(f"!({FINITE})")
    filled = {"filled": True, "opacity": 1}
    bottom, top = alt.YValue(alt.ExprRef("height")), alt.YValue(7)
    return [
        zero.mark_text(baseline="bottom", dy=-2, fontSize=11, fontWeight="bold").encode(
            **place, y=bottom, color=color, text=alt.TextValue("0")
        ),
        low.mark_point(shape="triangle-down", size=45, **filled).encode(
            **place, y=alt.YValue(alt.ExprRef("height - 6")), color=color
        ),
        high.mark_point(shape="triangle-up", size=45, **filled).encode(**place, y=top, color=color),
        bad.mark_point(shape="cross", angle=45, size=90, color=RED, **filled).encode(
            **place, y=top
        ),
    ]


def rows_at(lanes: Sequence[Lane], probe: str, cursor: int | None = None) -> dict[str, Rows]:
    """The datasets at each lane's last record up to step `cursor`, or at its last one, as `barsAt` of the
    player has them."""
    bars, steps = Rows(), list[tuple[str, int]]()
    for i, lane in enumerate(lanes):
        layers = lane.recording.layers(probe)
        at = row_at(layers, lane.recording.total if cursor is None else cursor)
        if at is None:
            continue
        values = layers.drawn[at]
        n, first = len(values), PROBES[probe].first_layer
        bars += rows(
            {
                "layer": np.arange(n) + first,
                "lane": np.full(n, i),
                "value": values,
                "name": [lane.title] * n,
            }
        )
        steps.append((lane.letter, int(layers.step[at])))
    if not steps:
        return {"bars": bars, "note": []}
    last = max(step for _, step in steps)
    earlier = ", ".join(f"{who}: step {step}" for who, step in steps if step < last)
    return {"bars": bars, "note": [{"text": f"step {last}" + (f" ({earlier})" if earlier else "")}]}


def row_at(layers: LayerValues, cursor: int) -> int | None:
    """Index of the last record at or before step `cursor`; None where there is none."""
    row = int(np.searchsorted(layers.step, cursor, side="right")) - 1
    return row if row >= 0 else None


def finding(lanes: Sequence[Lane], probe: str, cursor: int | None = None) -> str:
    """What the points show: first and last layer of each lane, at `cursor` or the last step."""
    each = ((lane, _ends(lane.recording, probe, cursor)) for lane in lanes)
    parts = [f"{lane.title} at {ends}" for lane, ends in each if ends]
    if not parts:
        return "Nothing has been recorded yet."
    solved = [
        f"The loss of {lane.title} is below {SMALL_LOSS:g}: small gradients go with success here."
        for lane in lanes
        if probe.startswith("grad") and len(loss := lane.recording.losses) and loss[-1] < SMALL_LOSS
    ]
    return " ".join(
        [f"{PROBES[probe].axis_label}. {'; '.join(parts)}.", *solved, *divergences(lanes)]
    )


def _ends(run: Recording, probe: str, cursor: int | None) -> str:
    layers = run.layers(probe)
    row = row_at(layers, run.total if cursor is None else cursor)
    if row is None:
        return ""
    values, first = layers.drawn[row], PROBES[probe].first_layer
    ends = (
        f"{number(values[0])} in {run.row} {first}, {number(values[-1])} in {run.row} {run.depth}"
    )
    return f"step {layers.step[row]}: {ends}"
