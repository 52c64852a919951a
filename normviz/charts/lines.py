"""One quantity over the steps in the first, the middle and the last layer: three lines a lane.

A line a layer would be two dozen that nobody can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import altair as alt

from normviz.catalog.probes import PROBES
from normviz.formats import number
from normviz.runs.lane import Lane

from .base import TEXT_SIZE, Spec, compiled, js, named, on_axis, step_axis, tick_label, value_scale
from .palette import LaneStyle, lane_color
from .scale import Domain

HEIGHT = 240
DASHES = ([1, 0], [6, 3], [2, 2])
WHICH = ("last layer", "middle", "first")


def finding(lanes: Sequence[Lane], probe: str) -> str:
    """Where the first and the last layer of each lane began and ended."""
    parts, first = [], PROBES[probe].first_layer
    for lane in lanes:
        run, values = lane.recording, lane.recording.layers(probe).drawn
        if len(values):
            ends = [
                f"{run.row} {layer} from {number(values[0, at])} to {number(values[-1, at])}"
                for layer, at in ((first, 0), (run.depth, -1))
            ]
            parts.append(f"{lane.title}: {', '.join(ends)}")
    if not parts:
        return "No step has been recorded yet."
    return f"{PROBES[probe].title} over the steps. {'; '.join(parts)}."


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
    rows = named("lines").transform_filter(on_axis(domain.scale == "log"))
    line = rows.transform_calculate(inside=f"clamp(datum.value, {js(domain.lo)}, {js(domain.hi)})")
    y = alt.Y("inside:Q", scale=value_scale(domain), axis=axis)
    color = lane_color(styles, labels)
    layers = [
        line.mark_line(clip=True, strokeWidth=1.8).encode(x=x, y=y, color=color, strokeDash=dash),
        line.transform_filter(alt.datum.dot)
        .mark_point(clip=True, filled=True, size=24, opacity=1)
        .encode(x=x, y=y, color=color),
        named("cursor").mark_rule(clip=True, opacity=0.7).encode(x=x),
    ]
    return compiled(layers, HEIGHT)
