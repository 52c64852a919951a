"""One quantity over the steps in the first, the middle and the last layer: three lines a lane.

A line a layer would be two dozen that nobody can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import altair as alt
import numpy as np

from normviz.catalog.probes import PROBES
from normviz.frames import LaneFrame

from .arrow import Columns, rows
from .base import TEXT_SIZE, Spec, compiled, named, step_axis, tick_label, value_scale
from .lanes import lane_color, styles_of
from .palette import LaneStyle
from .scale import Domain, probe_of, shown
from .words import name, number

HEIGHT = 240
DASHES = ([1, 0], [6, 3], [2, 2])
WHICH = ("last layer", "middle", "first")


def places(first: int, depth: int) -> dict[int, int]:
    """Layer of the last, the middle and the first line, by their place in WHICH."""
    return {0: depth, 1: (first + depth) // 2, 2: first}


def chart(lanes: Sequence[LaneFrame], domain: Domain) -> Spec:
    """The lines, with their rows; all lanes hold the same probe."""
    styles = styles_of(lanes)
    labels = tuple(lane.label for lane in lanes)
    steps = max(lane.steps for lane in lanes)
    constant = spec(styles, labels, lanes[0].probe, steps, domain)
    sets = {"lines": data(lanes, domain), "cursor": {"step": np.empty(0, np.int64)}}
    return {**constant, "datasets": {name: rows(columns) for name, columns in sets.items()}}


def data(lanes: Sequence[LaneFrame], domain: Domain) -> Columns:
    """Columns step, value (clamped to the axis), lane, which (place in WHICH)."""
    steps, values = [np.empty(0, np.int64)], [np.empty(0)]
    whose, which = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for index, lane in enumerate(lanes):
        first = probe_of(lane).first_layer
        for place, layer in places(first, lane.depth).items():
            column = shown(lane)[:, layer - first]
            drawn = np.isfinite(column) & ~domain.zero(column)
            steps.append(lane.probe_steps[drawn])
            values.append(column[drawn].clip(domain.lo, domain.hi))
            whose.append(np.full(drawn.sum(), index))
            which.append(np.full(drawn.sum(), place))
    return {
        "step": np.concatenate(steps),
        "value": np.concatenate(values),
        "lane": np.concatenate(whose),
        "which": np.concatenate(which),
    }


def finding(lanes: Sequence[LaneFrame]) -> str:
    """Where the first and the last layer of each lane began and ended."""
    said = []
    for lane in lanes:
        values, first = shown(lane), probe_of(lane).first_layer
        if len(values):
            ends = [
                f"layer {layer} from {number(values[0, at])} to {number(values[-1, at])}"
                for layer, at in ((first, 0), (lane.depth, -1))
            ]
            said.append(f"{name(lane)}: {', '.join(ends)}")
    if not said:
        return "No step has been recorded yet."
    return f"{probe_of(lanes[0]).label} over the steps. {'; '.join(said)}."


def spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    probe: str,
    steps: int,
    domain: Domain,
) -> Spec:
    """Vega-Lite dict of the lines without their data; a shallow copy of a cached one."""
    return dict(_spec(styles, labels, probe, steps, domain))


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...], labels: tuple[str, ...], probe: str, steps: int, domain: Domain
) -> Spec:
    x = step_axis(steps)
    axis = alt.Axis(
        title=PROBES[probe].axis_label, values=domain.ticks(), labelExpr=tick_label(domain)
    )
    dash = alt.StrokeDash(
        "which:N",
        scale=alt.Scale(domain=[0, 1, 2], range=[*DASHES]),
        legend=alt.Legend(
            title=None, orient="top", labelExpr=f"{list(WHICH)}[datum.value]", symbolType="stroke",
            symbolSize=400, labelFontSize=TEXT_SIZE,
        ),
    )  # fmt: skip
    line = named("lines").mark_line(clip=True, strokeWidth=1.8)
    layers = [
        line.encode(
            x=x,
            y=alt.Y("value:Q", scale=value_scale(domain), axis=axis),
            color=lane_color(styles, labels),
            strokeDash=dash,
        ),
        named("cursor").mark_rule(clip=True, opacity=0.7).encode(x=x),
    ]
    return compiled(layers, HEIGHT)
