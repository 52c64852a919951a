"""Colours, dashes and the legend of lanes: a placement has one colour everywhere, and red means divergence.

Every lane colour has a contrast of at least 3 to 1 on white and on Streamlit's dark background. Each
placement also has its own dash pattern, so lanes differ not by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import altair as alt
import numpy as np
from numpy.typing import NDArray

from normviz.runs.lane import Lane

from .base import CONTAINER_WIDTH, js
from .scale import Floats

SYMBOL_WIDTH, LETTER_WIDTH = 30, 6
"""Pixels that an entry of a legend takes, about."""
NARROW, WIDE = 290, 480
"""Pixels of the plots that a legend is laid out for: on a phone or beside the settings, and else."""
AXIS_WIDTH = 60
"""Pixels of the axis left of a plot, about."""
RED = "#e03131"  # not finite: nothing else is red
GREY = "#8a8f98"  # a heatmap cell whose value is zero (or below, by rounding)
BACKGROUNDS = ("#ffffff", "#171614")  # of Streamlit, light and dark


@dataclass(frozen=True)
class LaneStyle:
    """How one lane is drawn: its colour (#rrggbb) and dash pattern (pixels; empty is solid)."""

    color: str
    dash: tuple[int, ...] = ()


# Found by search: the farthest apart for usual and for colour-blind eyes, pre, post and red given.
SCHEMES = {
    "pre": LaneStyle("#3b7dd8"),
    "post": LaneStyle("#e07a10"),
    "pre_nofinal": LaneStyle("#7830fc", (6, 3)),
    "sandwich": LaneStyle("#30a860", (8, 3, 2, 3)),
    "peri": LaneStyle("#b484a8", (2, 2)),
    "deepnorm": LaneStyle("#845490", (10, 4)),
    "none": LaneStyle("#687e62", (4, 4)),
    "resp": LaneStyle("#a72db2", (14, 3)),
}
# For placements that are not in the table; which one depends on the key alone. They differ clearly from
# the table's colours, so only two such placements can meet in one colour.
SPARE = (
    LaneStyle("#a945f9", (7, 2)),
    LaneStyle("#955d2d", (3, 2)),
    LaneStyle("#da4185", (5, 2, 1, 2)),
    LaneStyle("#ed40ee", (9, 2, 3, 2)),
)
# Of lanes that cannot have their placement's own. No placement has these dashes.
DASHES = ((5, 1), (1, 3), (12, 3, 2, 3))
STAND_INS = [style.color for key, style in SCHEMES.items() if key not in ("pre", "post", "resp")]
APART = 10.0
"""Colours nearer than this (CIE76, for the eyes that tell them apart least) are one in a chart."""
CONTRAST = 3.05
"""Of a shade with both backgrounds, at least."""
FADE = 0.6
"""Share of the page's background in the colour of a lane that is of earlier settings."""

# Vega's own stops of its scheme "viridis" (perceptually uniform, safe for colour-blind eyes, no
# red). Vega interpolates them linearly in RGB; ramp() does the same, so legend and picture agree.
RAMP_SCHEME = "viridis"
RAMP_STOPS = (
    "#440154", "#470e61", "#481a6c", "#482575", "#472f7d", "#443a83", "#414487", "#3d4e8a", "#39568c",
    "#35608d", "#31688e", "#2d708e", "#2a788e", "#27818e", "#23888e", "#21918d", "#1f988b", "#1fa088",
    "#22a884", "#2ab07f", "#35b779", "#43bf71", "#54c568", "#66cc5d", "#7ad151", "#8fd744", "#a5db36",
    "#bcdf27", "#d2e21b", "#e9e51a", "#fde725",
)  # fmt: skip


# Where two lanes are compared: the second one's value is larger, both are equal, the first one's is.
DIVERGING = ("#c75d00", "#eeeeee", "#1d62c4")


def scheme_style(scheme: str) -> LaneStyle:
    """Colour and dash of a placement; the same in every process, also for a key not known yet."""
    return SCHEMES.get(scheme) or SPARE[crc32(scheme.encode()) % len(SPARE)]


@lru_cache(maxsize=1024)
def lane_styles(schemes: tuple[str, ...]) -> tuple[LaneStyle, ...]:
    """One style a lane, all with different colours, and all but plain Pre- and Post-LN by dash.

    A lane has its placement's own unless that comes too near to another lane's, as where a placement
    repeats: then it has the colour of a placement that is not in this chart, or another lightness.
    """
    first = [scheme in SCHEMES and scheme not in schemes[:i] for i, scheme in enumerate(schemes)]
    chosen: dict[int, LaneStyle] = {}
    for i in sorted(range(len(schemes)), key=lambda i: not first[i]):
        own, others = scheme_style(schemes[i]), chosen.values()
        color = _color(own.color, [other.color for other in others])
        taken = {other.dash for other in others}
        is_own = color == own.color
        dash = own.dash if is_own else next(d for d in DASHES if d not in taken)
        chosen[i] = LaneStyle(color, dash)
    return tuple(chosen[i] for i in range(len(schemes)))


def faded(style: LaneStyle, dark: bool) -> LaneStyle:
    """The style of a lane whose curves are of other settings than those that the page shows."""
    return LaneStyle(_mix(style.color, paper(dark), FADE), style.dash)


def _color(own: str, others: list[str]) -> str:
    """`own` where it differs enough from the others, else a stand-in, else a shade of it."""

    def least_distance(color: str) -> float:
        return min((distance(color, other) for other in others), default=100.0)

    for kind in ([own], STAND_INS, _shades(own)):
        best = max(kind, key=least_distance)
        if least_distance(best) >= APART:
            return best
    return max((*_shades(own), *STAND_INS), key=least_distance)


@lru_cache(maxsize=64)
def _shades(color: str) -> list[str]:
    """Lighter and darker forms of a colour, all legible on both backgrounds."""
    mixed = (
        _mix(color, other, share / 25) for other in ("#ffffff", "#000000") for share in range(25)
    )
    return [c for c in mixed if min(contrast(c, paper) for paper in BACKGROUNDS) >= CONTRAST]


def ramp(count: int) -> NDArray[np.uint8]:
    """[count, 3] colours of the heatmap scale from its low to its high end."""
    return _between(RAMP_STOPS, count)


def diverging(count: int) -> NDArray[np.uint8]:
    """[count, 3] colours of the comparing scale from its low to its high end."""
    return _between(DIVERGING, count)


def _between(colors: Sequence[str], count: int) -> NDArray[np.uint8]:
    stops = np.array([rgb(color) for color in colors])
    at = np.linspace(0, len(stops) - 1, count)
    channels = [np.interp(at, np.arange(len(stops)), stops[:, c]) for c in range(3)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


def rgb(color: str) -> tuple[int, int, int]:
    """(red, green, blue), each 0..255, of a #rrggbb colour."""
    red, green, blue = bytes.fromhex(color[1:])
    return red, green, blue


def ink(dark: bool) -> str:
    """Colour of words and rules on a chart without a background of its own."""
    return "#c9ced6" if dark else "#4a4f59"


def paper(dark: bool) -> str:
    """The page's background, for haloes behind words and for fading what lies ahead."""
    return BACKGROUNDS[dark]


def _mix(color: str, other: str, share: float) -> str:
    pairs = zip(rgb(color), rgb(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


# The player draws a heatmap as one picture, a pixel a cell. The codes of its cells:
EMPTY, BROKEN, ZERO, LOWEST = 0, 1, 2, 3  # from LOWEST to 255 the colour scale
LEVELS = 256 - LOWEST


def _cells(colors: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """[256, 4] red, green, blue and alpha of every code."""
    marks = np.array([(0, 0, 0, 0), (*rgb(RED), 255), (*rgb(GREY), 255)], np.uint8)
    return np.vstack([marks, np.hstack([colors, np.full((LEVELS, 1), 255, np.uint8)])])


PALETTE, COMPARING = _cells(ramp(LEVELS)), _cells(diverging(LEVELS))


# Measures of colours.

# Usual, protanopia, deuteranopia, tritanopia: Machado et al. 2009, severity 1, on linear RGB.
EYES = np.array(
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    ]
)
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def distance(first: str, second: str) -> float:
    """CIE76 difference of two #rrggbb colours for the eyes that tell them apart least."""
    return float(np.linalg.norm(_lab(first) - _lab(second), axis=1).min())


def contrast(first: str, second: str) -> float:
    """WCAG contrast of two #rrggbb colours, 1 to 21."""
    low, high = sorted(float(TO_XYZ[1] @ _linear(color)) for color in (first, second))
    return (high + 0.05) / (low + 0.05)


def _linear(color: str) -> Floats:
    c = np.array(list(bytes.fromhex(color[1:]))) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


@lru_cache(maxsize=1024)
def _lab(color: str) -> Floats:
    """[eyes, 3] L*a*b* under D65."""
    light = np.clip(EYES @ _linear(color), 0.01, 1)
    x, y, z = np.cbrt(light @ TO_XYZ.T / WHITE).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def styles_of(lanes: Sequence[Lane], dark: bool = False) -> tuple[LaneStyle, ...]:
    """One style a lane; faded where its run is of other settings than those that the page shows."""
    own = lane_styles(tuple(lane.recording.config.scheme for lane in lanes))
    pairs = zip(lanes, own, strict=True)
    return tuple(faded(style, dark) if lane.earlier else style for lane, style in pairs)


def lane_color(styles: tuple[LaneStyle, ...], labels: tuple[str, ...] = ()) -> alt.Color:
    """The colour of each lane, with a legend above the chart that names them by labels, if there are any."""
    scale = _scale(styles, [s.color for s in styles])
    return alt.Color("lane:N", scale=scale, legend=_legend(labels) if labels else None)


def lane_dash(styles: tuple[LaneStyle, ...], labels: tuple[str, ...] = ()) -> alt.StrokeDash:
    """The dash pattern of each lane; its legend merges with the colour's."""
    dashes = [list(s.dash) or [1, 0] for s in styles]
    legend = _legend(labels) if labels else None
    return alt.StrokeDash("lane:N", scale=_scale(styles, dashes), legend=legend)


def _scale(styles: tuple[LaneStyle, ...], values: list[str] | list[list[int]]) -> alt.Scale:
    return alt.Scale(domain=list(range(len(styles))), range=values)


def _legend(labels: tuple[str, ...]) -> alt.Legend:
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
        symbolType="stroke",
        symbolSize=400,
        symbolStrokeWidth=3,
        symbolOpacity=1,
        offset=10,
        padding=0,
    )


def _fitting(width: int, room: int, most: int) -> int:
    """Entries of that width that fit side by side."""
    return max(1, min(most, room // width))
