"""One quantity in every layer at the cursor's step, lane beside lane on one axis.

Bars on a log axis, so that a gradient of 1e-5 can be seen; points and a line in deep models. Zero,
values off the axis and numbers that are not finite have marks of their own, never a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt

from normviz.catalog.probes import PROBES
from normviz.frames import LaneFrame

from .arrow import rows
from .bars_data import data, row_at
from .base import TEXT_SIZE, Spec, compiled, named, tick_label, value_scale
from .lanes import lane_color, styles_of
from .palette import RED, LaneStyle, ink
from .scale import Domain, probe_of, shown
from .words import SOLVED, divergences, name, number

HEIGHT = 200
NOTE_BELOW = 50  # pixels under the axis: the row of the axis title
MOST_BARS = 40  # layers; in deeper models bars would be thinner than the gaps between them


def chart(lanes: Sequence[LaneFrame], cursor: int, domain: Domain, dark: bool = False) -> Spec:
    """The bars at step `cursor`, with their rows; all lanes hold the same probe."""
    styles = styles_of(lanes, dark)
    labels = tuple(lane.label for lane in lanes)
    depth = max(lane.depth for lane in lanes)
    constant = spec(styles, labels, lanes[0].probe, depth, domain, dark)
    sets = data(lanes, cursor, domain)
    return {**constant, "datasets": {name: rows(columns) for name, columns in sets.items()}}


def spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    probe: str,
    depth: int,
    domain: Domain,
    dark: bool = False,
) -> Spec:
    """Vega-Lite dict of the bars without their data; a shallow copy of a cached one."""
    return dict(_spec(styles, labels, probe, depth, domain, dark))


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    probe: str,
    depth: int,
    domain: Domain,
    dark: bool,
) -> Spec:
    record = PROBES[probe]
    place = _place(record.first_layer, depth, len(styles))
    y = alt.Y(
        "value:Q",
        scale=value_scale(domain),
        axis=alt.Axis(title=record.axis_label, values=domain.ticks(), labelExpr=tick_label(domain)),
    )
    color = lane_color(styles, labels, "square")
    layers = [
        *_values(place, y, color, domain, deep=depth > MOST_BARS),
        *outside(place, color),
        named("bad")
        .mark_point(shape="cross", angle=45, filled=True, size=90, color=RED, opacity=1)
        .encode(**place, y=alt.YValue(7)),
        named("note")
        .mark_text(align="right", baseline="middle", fontSize=TEXT_SIZE, color=ink(dark))
        .encode(
            x=alt.XValue(alt.ExprRef("width")),
            y=alt.YValue(HEIGHT + NOTE_BELOW),
            text=alt.Text("text:N"),
        ),
    ]
    return compiled(layers, HEIGHT)


def _place(first: int, depth: int, lanes: int) -> dict[str, Any]:
    """Where a layer stands: lanes side by side in a band, or on one line in deep models."""
    if depth > MOST_BARS:
        scale = alt.Scale(domain=[first - 0.5, depth + 0.5], nice=False, zero=False)
        axis = alt.Axis(title="layer", grid=False, format="d", tickMinStep=1)
        return {"x": alt.X("layer:Q", scale=scale, axis=axis)}
    band = alt.Scale(domain=list(range(first, depth + 1)), paddingInner=0.25, paddingOuter=0.1)
    axis = alt.Axis(title="layer", labelAngle=0, labelOverlap=True, grid=False)
    return {
        "x": alt.X("layer:O", scale=band, axis=axis),
        "xOffset": alt.XOffset("lane:N", scale=alt.Scale(domain=list(range(lanes)))),
    }


def _values(
    place: dict[str, Any], y: alt.Y, color: alt.Color, domain: Domain, deep: bool
) -> list[alt.Chart]:
    words = [
        alt.Tooltip("name:N", title="lane"),
        alt.Tooltip("layer:Q", title="layer"),
        alt.Tooltip("value:Q", title="value", format=".3~g"),
    ]
    at = named("bars").encode(**place, y=y, color=color, tooltip=words)
    if deep:
        return [at.mark_line(clip=True), at.mark_point(clip=True, filled=True, size=24, opacity=1)]
    # A log axis has no zero for bars to start from: they start at its lower edge.
    return [at.mark_bar(clip=True).encode(y2=alt.Y2Datum(domain.lo))]


def outside(place: dict[str, Any], color: alt.Color) -> list[alt.Chart]:
    """ "0" on the lower edge where a log axis has no place for a value; triangles off it."""
    zero = named("zeros").mark_text(baseline="bottom", dy=-2, fontSize=11, fontWeight="bold")
    low = named("below").mark_point(filled=True, shape="triangle-down", size=45, opacity=1)
    high = named("above").mark_point(filled=True, shape="triangle-up", size=45, opacity=1)
    bottom = alt.YValue(alt.ExprRef("height"))
    return [
        zero.encode(**place, y=bottom, color=color, text=alt.TextValue("0")),
        low.encode(**place, y=alt.YValue(alt.ExprRef("height - 6")), color=color),
        high.encode(**place, y=alt.YValue(7), color=color),
    ]


def finding(lanes: Sequence[LaneFrame], cursor: int | None = None) -> str:
    """What the bars show: first and last layer of each lane, at `cursor` or the last step."""
    said = [text for lane in lanes if (text := _lane_finding(lane, cursor))]
    if not said:
        return "Nothing has been recorded yet."
    record = probe_of(lanes[0])
    solved = [
        f"The loss of {name(lane)} is below {SOLVED:g}: small gradients go with success here."
        for lane in lanes
        if record.key.startswith("grad") and len(lane.loss) and lane.loss[-1] < SOLVED
    ]
    return " ".join([f"{record.axis_label}. {'; '.join(said)}.", *solved, *divergences(lanes)])


def _lane_finding(lane: LaneFrame, cursor: int | None) -> str:
    row = row_at(lane, lane.steps if cursor is None else cursor)
    if row is None:
        return ""
    values, first = shown(lane)[row], probe_of(lane).first_layer
    ends = f"{number(values[0])} in layer {first}, {number(values[-1])} in layer {lane.depth}"
    return f"{name(lane)} at step {lane.probe_steps[row]}: {ends}"
