"""Colours: legible on both backgrounds, stable, apart for colour-blind eyes; red is reserved."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest

from normviz.catalog import SCHEMES as PLACEMENTS
from normviz.catalog.models import census
from normviz.charts import lane_styles
from normviz.charts.palette import BACKGROUNDS, RED, SCHEMES, SPARE, rgb, scheme_style

KEYS = PLACEMENTS.keys()

# Machado et al. 2009, severity 1, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@cache
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


@cache
def contrast(one: str, other: str) -> float:
    """WCAG contrast of two colours."""
    each = (float(linear(color) @ TO_XYZ[1]) for color in (one, other))
    high, low = sorted(each, reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_lane_colours_are_legible_on_both_backgrounds_and_never_red() -> None:
    for style in (*SCHEMES.values(), *SPARE):
        assert all(contrast(style.color, paper) >= 3 for paper in BACKGROUNDS)
        assert not looks_red(style.color)


def looks_red(color: str) -> bool:
    red, green, blue = rgb(color)
    return red > 130 and max(green, blue) < red / 2


@cache
def apart(one: str, other: str) -> float:
    """Distance for the eyes that tell them apart least."""
    return min(
        float(np.linalg.norm(lab(np.array(eye) @ linear(one)) - lab(np.array(eye) @ linear(other))))
        for eye in EYES.values()
    )


def assert_told_apart(schemes: tuple[str, ...]) -> None:
    styles = lane_styles(schemes)
    solid = {"pre", "post"} <= set(schemes)
    assert len({style.dash for style in styles}) == len(schemes) - solid, (schemes, styles)
    for one, other in combinations(styles, 2):
        assert apart(one.color, other.color) >= 9.9, (schemes, styles)
    for style in styles:
        assert not looks_red(style.color)
        assert all(contrast(style.color, paper) >= 3 for paper in BACKGROUNDS), (schemes, styles)


def test_the_lanes_of_any_two_placements_are_told_apart() -> None:
    for pair in combinations_with_replacement(KEYS, 2):
        assert_told_apart(pair)
        assert_told_apart(pair[::-1])


def test_the_lanes_of_any_four_placements_are_told_apart() -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        assert_told_apart(tuple(random.choice(KEYS, 4)))
    for scheme in KEYS:
        assert_told_apart((scheme,) * 4)


def test_placements_of_the_table_keep_their_colours() -> None:
    for own in SCHEMES:
        for other in KEYS:
            if other != own:
                assert lane_styles((own, other))[0] == SCHEMES[own]
                assert lane_styles((other, own))[1] == SCHEMES[own]


def test_the_census_has_a_placement_in_its_own_colour_where_more_than_one_stack_has_it() -> None:
    counts = Counter(model.placement for model in census().models if model.placement)
    keys = tuple(key for key, _ in counts.most_common())
    often = [key for key, n in counts.items() if n > 1]
    styles = dict(zip(keys, lane_styles(keys), strict=True))
    assert {key: styles[key].color for key in often} == {
        key: scheme_style(key).color for key in often
    }


def test_a_placement_keeps_its_colour_beside_all_but_its_namesakes() -> None:
    for one, other in combinations(KEYS, 2):
        own = scheme_style(one), scheme_style(other)
        assert lane_styles((one, other)) == own or own[0] == own[1]
    assert scheme_style("new_scheme") == scheme_style("new_scheme")


def test_lanes_of_one_placement_have_different_colours_and_not_shades_of_one() -> None:
    for scheme in SCHEMES:
        first, *others = lane_styles((scheme,) * 3)
        assert first == scheme_style(scheme)
        assert {style.color for style in others} <= {style.color for style in SCHEMES.values()}
        assert not {style.color for style in others} & {SCHEMES["pre"].color, SCHEMES["post"].color}
