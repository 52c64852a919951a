"""Loss curves of all lanes on one log axis, with chance and floor to measure them by.

What ran before the cursor is solid, what comes after it is faint. Divergence is drawn, not left
out, and so is what lies above the axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, Literal

import altair as alt

from normviz.frames import LaneFrame

from . import loss_data
from .arrow import Columns, rows
from .base import TEXT_SIZE, Rows, Spec, compiled, halo, named, step_axis
from .lanes import lane_color, lane_dash, styles_of
from .loss_axis import ticks, y_domain
from .loss_data import HEIGHT
from .palette import RED, LaneStyle, ink, paper
from .words import divergences, first_bad, listed, name, number

ZOOM = "loss_zoom"  # the selection a page lists in selection_mode, or zoom is lost at every tick
RATE_TICK = 14
# Words stand beside what they name, on the side with room: (alignment, shift in pixels).
SIDES: tuple[tuple[Literal["left", "center", "right"], int], ...] = (
    ("left", 8),
    ("center", 0),
    ("right", -8),
)


def chart(
    lanes: Sequence[LaneFrame],
    cursor: int,
    dark: bool = False,
    repeats: Sequence[Sequence[LaneFrame]] = (),
    linear: bool = False,
) -> Spec:
    """The loss chart at step `cursor`: a whole Vega-Lite dict, with its rows.

    `repeats` holds, for each lane, its runs from all seeds.
    """
    domain = y_domain([*lanes, *(frame for frames in repeats for frame in frames)])
    if linear:
        domain = (0.0, domain[1])
    styles = styles_of(lanes, dark)
    labels = tuple(lane.label for lane in lanes)
    steps = max((lane.steps for lane in lanes), default=1)
    sets = {**loss_data.moving(lanes, cursor, domain), **loss_data.fixed(lanes, domain)}
    sets |= loss_data.seeds(repeats, domain)
    return {**spec(styles, labels, steps, domain, dark, linear), "datasets": _rows(sets)}


def fixed(lanes: Sequence[LaneFrame], domain: tuple[float, float]) -> dict[str, Rows]:
    """The datasets that the cursor does not change, as rows of JSON."""
    return _rows(loss_data.fixed(lanes, domain))


def _rows(sets: dict[str, Columns]) -> dict[str, Rows]:
    return {name: rows(columns) for name, columns in sets.items()}


def spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    steps: int,
    domain: tuple[float, float],
    dark: bool = False,
    linear: bool = False,
) -> Spec:
    """Vega-Lite dict of the loss chart without its data; a shallow copy of a cached one."""
    return dict(_spec(styles, labels, steps, domain, dark, linear))


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    steps: int,
    domain: tuple[float, float],
    dark: bool,
    linear: bool,
) -> Spec:
    x = step_axis(steps)
    scale = alt.Scale(type="linear" if linear else "log", domain=list(domain), nice=False)
    axis = alt.Axis(title="loss (nats per token)", format="~g")
    if not linear:
        axis.values = ticks(domain)
    y = alt.Y("loss:Q", scale=scale, axis=axis)
    line = {
        "x": x,
        "y": y,
        "color": lane_color(styles, labels),
        "strokeDash": lane_dash(styles, labels),
    }
    past = named("past").mark_line(clip=True, strokeWidth=2.2).encode(**line)
    layers = [
        named("levels").mark_rule(clip=True, strokeDash=[5, 4], color=ink(dark)).encode(y=y),
        _cursor(x, ink(dark)),
        *_seeds(line),
        named("ahead").mark_line(clip=True, strokeWidth=1.5, opacity=0.3).encode(**line),
        past.properties(name="loss_lines").add_params(_zoom()),
        named("heads")
        .mark_point(clip=True, filled=True, size=70, opacity=1)
        .encode(x=x, y=y, color=line["color"]),
        *_level_words(y, dark),
        *_rates(x, ink(dark)),
        *_above(x, line["color"]),
        *_bad(x, y),
    ]
    return compiled(layers, HEIGHT)


def _seeds(line: dict[str, Any]) -> list[alt.Chart]:
    """The same settings from other seeds: a thin line each, and a band over their range."""
    place = {name: line[name] for name in ("x", "y", "color")}
    area = named("band").mark_area(clip=True, opacity=0.15)
    thin = named("seeds").mark_line(clip=True, strokeWidth=0.8, opacity=0.5)
    return [
        area.encode(**place, y2=alt.Y2("highest:Q")),
        thin.encode(**place, detail=alt.Detail("seed:N")),
    ]


def _zoom() -> alt.Parameter:
    """Drag to move, ctrl + wheel to zoom, double click to reset.

    A plain wheel and a finger keep scrolling the page.
    """
    return alt.selection_interval(
        name=ZOOM,
        bind="scales",
        translate="[pointerdown[event.pointerType === 'mouse'], window:pointerup]"
        " > window:pointermove!",
        zoom="wheel![event.ctrlKey || event.metaKey]",
    )


def _level_words(y: alt.Y, dark: bool) -> list[alt.Chart]:
    """The names of chance and floor at the right end of their rules, legible over curves."""
    at = named("levels").encode(x=alt.XValue(alt.ExprRef("width")), y=y, text=alt.Text("text:N"))
    words = []
    for side, baseline, dy in (("!datum.under", "bottom", -3), ("datum.under", "top", 4)):
        place = {"align": "right", "baseline": baseline, "dx": -8, "dy": dy, "fontSize": TEXT_SIZE}
        one = at.transform_filter(side)
        words += [
            one.mark_text(**place, clip=True, **halo(paper(dark))),
            one.mark_text(**place, clip=True, color=ink(dark)),
        ]
    return words


def _cursor(x: alt.X, color: str) -> alt.Chart:
    return named("cursor").mark_rule(clip=True, strokeWidth=1, color=color, opacity=0.7).encode(x=x)


def _rates(x: alt.X, color: str) -> list[alt.Chart]:
    """A tick on the lower edge where the learning rate was changed, and the rate above it."""
    tick = named("rates").mark_rule(clip=True, strokeWidth=2, color=color)
    ends = {"y": alt.YValue(HEIGHT), "y2": alt.Y2Value(HEIGHT - RATE_TICK)}
    return [tick.encode(x=x, **ends), *_words("rates", x, alt.ColorValue(color))]


def _above(x: alt.X, color: alt.Color) -> list[alt.Chart]:
    """Triangles at the upper edge where the loss is above the axis; the peaks in words."""
    mark = named("above").mark_point(
        clip=True, filled=True, shape="triangle-up", size=60, opacity=1
    )
    return [mark.encode(x=x, y=alt.YValue(8), color=color), *_words("peaks", x, color)]


def _bad(x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A red rule and cross where a lane diverged, and the words beside it."""
    at = named("bad").encode(x=x)
    rule = at.mark_rule(clip=True, strokeDash=[2, 2], color=RED)
    cross = at.mark_point(
        clip=True, shape="cross", angle=45, filled=True, size=130, color=RED, opacity=1
    ).encode(y=y)
    return [rule, cross, *_words("bad", x, alt.ColorValue(RED))]


def _words(dataset: str, x: alt.X, color: alt.Color | alt.ColorValue) -> list[alt.Chart]:
    """The dataset's words beside their steps, in pixel rows of their own."""
    row = alt.Y("row:Q", scale=None, axis=None)
    return [
        named(dataset)
        .transform_filter(alt.datum.side == side)
        .mark_text(align=side, baseline="middle", dx=dx, fontSize=TEXT_SIZE, clip=True)
        .encode(x=x, y=row, color=color, text=alt.Text("text:N"))
        for side, dx in SIDES
    ]


def finding(lanes: Sequence[LaneFrame]) -> str:
    """What the chart shows: the last loss of each lane beside chance, and where one diverged."""
    ran = [lane for lane in lanes if len(lane.loss)]
    if not ran:
        return "No step has run yet."
    finite = [lane for lane in ran if first_bad(lane) is None]
    ends = {len(lane.loss) - 1 for lane in finite}
    together = f" at step {ends.pop()}" if len(ends) == 1 else ""
    each = [f"{name(lane)} {number(lane.loss[-1])}" for lane in finite]
    if not together:
        each = [f"{v} at step {len(lane.loss) - 1}" for v, lane in zip(each, finite, strict=True)]
    known = {number(lane.chance) for lane in ran if isfinite(lane.chance)}
    each += [f"chance {chance}" for chance in sorted(known)]
    said = [f"Loss{together} in nats per token: {listed(each)}."]
    rates = [
        f"{name(lane)} has learning rate {number(lr)} from step {step}."
        for lane in ran
        for step, lr in lane.edits
    ]
    return " ".join(said + rates + divergences(ran))
