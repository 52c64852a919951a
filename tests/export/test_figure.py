"""The figure for a paper: its size in points, and what it says of seeds and band."""

from __future__ import annotations

import re

import pytest
from charts_kit import make

from normviz.export import figure
from normviz.runs.lane import Lane

MM = 72 / 25.4


def lanes(seeds: int = 1) -> list[Lane]:
    each = (make("pre"), make("post", name="B  post"))
    return [Lane(one.name, one.config, one.recordings * seeds) for one in each]


def words(svg: bytes) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", svg.decode()).split())


def test_it_is_as_wide_as_asked_and_its_words_are_as_large() -> None:
    """A unit of the view box is a pixel of the charts, whose words have 12."""
    text = figure(lanes(), "svg", width=120, size=7).decode()
    wide, view = re.search(r'width="([\d.]+)pt" .*?viewBox="0 0 ([\d.]+) ', text).groups()
    assert float(wide) == pytest.approx(120 * MM, abs=0.01)
    assert float(wide) / float(view) * 12 == pytest.approx(7, abs=0.01)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids)) and {one.split("-")[0] for one in ids} <= {"loss", "layers"}


def test_a_pdf_has_the_size_in_points() -> None:
    (box,) = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ", figure(lanes(), "pdf", width=150))
    assert float(box) == pytest.approx(150 * MM, abs=0.1)


def test_it_says_which_seeds_and_what_the_band_is() -> None:
    one, five = words(figure(lanes(), "svg")), words(figure(lanes(5), "svg"))
    assert "1 seed each." in one and "band" not in one
    assert "5 seeds each: line seed 0" in five and "band from lowest to highest" in five
    assert "Layers of seed 0." in five and "Layers of" not in one


def test_where_the_charts_have_no_room_the_least_width_is_said() -> None:
    with pytest.raises(ValueError, match="the width is 50 mm, allowed with words of 10 points is"):
        figure(lanes(), "pdf", width=50, size=10)
