"""Colours: legible on both backgrounds, stable, apart for colour-blind eyes; red is reserved."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from normviz.charts import lane_styles
from normviz.charts.palette import BACKGROUNDS, RED, SCHEMES, SPARE, rgb, scheme_style

# Machado et al. 2009, severity 1, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> np.ndarray:
    c = np.array(rgb(color)) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB under D65."""
    x, y, z = np.cbrt(TO_XYZ @ np.clip(light, 0.01, 1) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES)
def test_placements_and_red_are_apart_for_every_eye(eye: str) -> None:
    colors = [*(style.color for style in SCHEMES.values()), RED]
    seen = [lab(np.array(EYES[eye]) @ linear(color)) for color in colors]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


def contrast(one: str, other: str) -> float:
    """WCAG contrast of two colours."""
    each = (float(linear(color) @ TO_XYZ[1]) for color in (one, other))
    high, low = sorted(each, reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_lane_colours_are_legible_on_both_backgrounds_and_never_red() -> None:
    for style in (*SCHEMES.values(), *SPARE):
        assert all(contrast(style.color, paper) >= 3 for paper in BACKGROUNDS)
        red, green, blue = rgb(style.color)
        assert not (red > 180 and max(green, blue) < 90)


def test_a_lane_keeps_its_colour_when_another_goes() -> None:
    three = lane_styles(("pre", "post", "new_scheme"))
    assert lane_styles(("post", "new_scheme")) == three[1:]
    assert scheme_style("new_scheme") == scheme_style("new_scheme")


def test_lanes_of_one_placement_can_be_told_apart() -> None:
    for scheme in ("pre", "peri", "unknown"):
        styles = lane_styles((scheme,) * 4)
        assert styles[0] == scheme_style(scheme)
        assert len({s.color for s in styles}) == 4 and len({s.dash for s in styles}) == 4
