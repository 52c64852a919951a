"""The lane encodings: lanes travel as numbers 0..3; colours, dashes and names stay in the spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import altair as alt

from normviz.runs.lane import Lane

from .base import CONTAINER_WIDTH, js
from .palette import LaneStyle, faded, lane_styles

Symbol = Literal["stroke", "square"]
SYMBOL_WIDTH, LETTER_WIDTH = 30, 6
"""Pixels that an entry of a legend takes, about."""
NARROW, WIDE = 290, 480
"""Pixels of the plots that a legend is laid out for: on a phone or beside the settings, and else."""
AXIS_WIDTH = 60


def styles_of(lanes: Sequence[Lane], dark: bool = False) -> tuple[LaneStyle, ...]:
    """One style a lane; faded where its run is of other settings than those that the page shows."""
    own = lane_styles(tuple(lane.recording.config.scheme for lane in lanes))
    pairs = zip(lanes, own, strict=True)
    return tuple(faded(style, dark) if lane.earlier else style for lane, style in pairs)


def lane_color(
    styles: tuple[LaneStyle, ...], labels: tuple[str, ...], symbol: Symbol = "stroke"
) -> alt.Color:
    """The colour of each lane, with a legend above the chart that names them."""
    scale = _scale(styles, [s.color for s in styles])
    return alt.Color("lane:N", scale=scale, legend=_legend(labels, symbol))


def lane_dash(styles: tuple[LaneStyle, ...], labels: tuple[str, ...]) -> alt.StrokeDash:
    """The dash pattern of each lane; its legend merges with the colour's."""
    dashes = [list(s.dash) or [1, 0] for s in styles]
    return alt.StrokeDash("lane:N", scale=_scale(styles, dashes), legend=_legend(labels, "stroke"))


def _scale(styles: tuple[LaneStyle, ...], values: list[str] | list[list[int]]) -> alt.Scale:
    return alt.Scale(domain=list(range(len(styles))), range=values)


def _legend(labels: tuple[str, ...], symbol: Symbol) -> alt.Legend:
    names = [" ".join(label.split()) for label in labels]
    widest = SYMBOL_WIDTH + LETTER_WIDTH * max(map(len, names), default=0)
    narrow, wide = _fitting(widest, NARROW, 2), _fitting(widest, WIDE, 4)
    return alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=alt.ExprRef(f"{CONTAINER_WIDTH} < {WIDE + AXIS_WIDTH} ? {narrow} : {wide}"),
        labelExpr=f"{js(names)}[datum.value]",
        labelLimit=170 if max(map(len, names), default=0) < 24 else 340,
        symbolType=symbol,
        symbolSize=400 if symbol == "stroke" else 130,
        symbolStrokeWidth=3,
        symbolOpacity=1,
        offset=4,
        padding=0,
    )


def _fitting(width: int, room: int, most: int) -> int:
    """Entries of that width that fit side by side."""
    return max(1, min(most, room // width))
