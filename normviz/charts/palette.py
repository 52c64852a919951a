"""Colours, defined once: a placement keeps its colour everywhere, and red means divergence only.

Every lane colour has a contrast of at least 3 to 1 on white and on Streamlit's dark background.
Colour alone never tells two lanes apart: each placement also has its dash pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

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
    "none": LaneStyle("#606c60", (4, 4)),
}
# For placements that are not in the table yet; which one depends on the key alone.
SPARE = (
    LaneStyle("#6f6fe0", (7, 2)),
    LaneStyle("#8a9a1e", (3, 2)),
    LaneStyle("#d0609a", (5, 2, 1, 2)),
    LaneStyle("#5f8f4e", (9, 2, 3, 2)),
)
# What sets the second, third and fourth lane of one placement apart: (mixed with, share, dash).
# No placement has these dashes.
REPEATS = (("#ffffff", 0.4, (5, 1)), ("#000000", 0.35, (1, 3)), ("#ffffff", 0.6, (12, 3, 2, 3)))

# Vega's own stops of its scheme "viridis" (perceptually uniform, safe for colour-blind eyes, no
# red). Vega interpolates them linearly in RGB; ramp() does the same, so legend and picture agree.
RAMP_SCHEME = "viridis"
RAMP_STOPS = (
    "440154470e61481a6c482575472f7d443a834144873d4e8a39568c35608d31688e2d708e2a788e27818e23888e"
    "21918d1f988b1fa08822a8842ab07f35b77943bf7154c56866cc5d7ad1518fd744a5db36bcdf27d2e21be9e51a"
    "fde725"
)


# Where two lanes are compared: the second one's value is larger, both are equal, the first one's is.
DIVERGING = ("#c75d00", "#eeeeee", "#1d62c4")


def scheme_style(scheme: str) -> LaneStyle:
    """Colour and dash of a placement; the same in every process, also for a key not known yet."""
    return SCHEMES.get(scheme) or SPARE[crc32(scheme.encode()) % len(SPARE)]


def lane_styles(schemes: tuple[str, ...]) -> tuple[LaneStyle, ...]:
    """One style per lane; a placement that comes again differs in lightness and dash."""
    styles: list[LaneStyle] = []
    for scheme in schemes:
        style = scheme_style(scheme)
        if style not in styles:
            styles.append(style)
            continue
        variants = (
            LaneStyle(_mix(style.color, other, share), dash) for other, share, dash in REPEATS
        )
        styles.append(next((v for v in variants if v not in styles), style))
    return tuple(styles)


def ramp(count: int) -> NDArray[np.uint8]:
    """[count, 3] colours of the heatmap scale from its low to its high end."""
    stops = np.array([list(bytes.fromhex(RAMP_STOPS[i : i + 6])) for i in range(0, 186, 6)])
    return _between(stops, count)


def diverging(count: int) -> NDArray[np.uint8]:
    """[count, 3] colours of the comparing scale from its low to its high end."""
    return _between(np.array([rgb(color) for color in DIVERGING]), count)


def _between(stops: NDArray[np.int64], count: int) -> NDArray[np.uint8]:
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
