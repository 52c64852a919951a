"""Frontier, sensitivity and comparisons, from points whose losses are given."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from normviz import RunConfig
from normviz.charts.map import chart, finding
from normviz.cli.sweep_output import report
from normviz.export.pictures import picture
from normviz.runs.statistics import compare, spread
from normviz.studies.maps import Cell, Grid, SweepError, grid_of, make
from normviz.studies.maps.layout import maps, spanned
from normviz.studies.maps.points import Point
from normviz.studies.maps.summary import edge_rows, frontier, sensitivity, table, wortsman

CHANCE, FLOOR, FIRST = 3.3, 1.1, 3.8
RATES = (1e-3, 1e-2, 1e-1)


def made(cell: Cell, loss: float, kind: str = "learned", falling: bool = False) -> Point:
    return Point(cell, kind, kind, 100, loss, FIRST, CHANCE, FLOOR, falling, 1.0)


def one_scheme(losses: list[float], kinds: list[str] | None = None) -> tuple[Grid, list[Point]]:
    grid = make(RunConfig(), {"lr": RATES})
    cells = sorted(grid.cells, key=lambda cell: cell.at)
    return grid, [
        made(c, x, k) for c, x, k in zip(cells, losses, kinds or ["learned"] * 3, strict=True)
    ]


def test_sensitivity_is_that_of_wortsman() -> None:
    """The mean of min(l, l0) - l*: by hand ((1.5-1.2) + 0 + (3.8-1.2)) / 3."""
    _, points = one_scheme([1.5, 1.2, 9.0])
    value, best = wortsman(points)
    assert best == 1.2
    assert value == pytest.approx((0.3 + 0 + (FIRST - 1.2)) / 3)


def test_a_diverged_run_counts_as_the_first_loss() -> None:
    for loss in (math.nan, math.inf, 1.3):
        _, points = one_scheme([1.5, 1.2, loss], ["learned", "learned", "diverged"])
        assert wortsman(points)[0] == pytest.approx((0.3 + FIRST - 1.2) / 3)


def test_the_first_trap_is_named() -> None:
    grid, points = one_scheme([3.31, 3.30, 3.32], ["at chance"] * 3)
    (row,) = sensitivity(grid, points)
    assert row.value.median < 0.02 and row.fails
    said = report(grid, points)
    assert "no rate trains, so a small sensitivity says nothing here" in said


def test_the_second_trap_is_named() -> None:
    grid, points = one_scheme([3.0, 1.2, 1.3])
    points[0] = made(points[0].cell, 3.0, falling=True)
    (row,) = sensitivity(grid, points)
    assert row.falling == (1e-3,) and not row.fails
    assert row.excess is not None
    assert row.excess.median == pytest.approx(0.1)
    assert "still falling at lr 0.001" in report(grid, points)


def test_an_unfinished_row_has_no_sensitivity() -> None:
    grid, points = one_scheme([3.0, 1.2, 1.3])
    assert sensitivity(grid, points[:2]) == []
    assert "best loss" not in report(grid, points[:2])
    assert report(grid, []) == "no cell has ended"


def test_the_frontier_is_the_largest_rate_that_trains() -> None:
    grid = make(RunConfig(), {"depth": (2, 8, 32), "lr": RATES})
    trains = {2: 3, 8: 2, 32: 0}
    points = [
        made(cell, 1.2 if cell.at[1] < trains[cell.config.depth] else 3.3, "learned")
        for cell in grid.cells
    ]
    edges = {dict(edge.place)["depth"]: edge for edge in frontier(grid, points)}
    assert [edges[d].rate for d in (2, 8, 32)] == [1e-1, 1e-2, None]
    assert [edges[d].is_last for d in (2, 8, 32)] == [True, False, False]
    (one,) = maps(grid, points)
    assert one.title == "Pre-LN"
    assert (one.x, one.y, one.frontier) == ("depth", "learning rate", (2, 1, None))
    assert "rate that trains in these steps by depth: 2: 0.1, 8: 0.01, 32: none." in finding(one)
    assert edge_rows(grid, points, "depth") == {
        "": {"2": "≥ 0.1", "8": "0.01 (0.01 to 0.1)", "32": "none from 0.001 up in 200 steps"}
    }
    said = report(grid, points)
    assert "depth 8: trains up to lr 0.01 (0.01 to 0.1)" in said
    assert "depth 32: trains at no rate tried from 0.001 up in 200 steps" in said


def test_a_limit_has_the_range_of_its_seeds_own_limits() -> None:
    """Of three seeds one trains at rates up to 0.001, one up to 0.01 and one at all, or at none."""
    grid = make(RunConfig(), {"lr": RATES}, 3)
    for limits, text in (
        ((1e-3, 1e-2, 1e-1), "0.01 (0.001 to more)"),
        ((1e-3, 1e-2, 1e-2), "0.01 (0.001 to 0.1)"),
        ((0.0, 1e-2, 1e-2), "0.01 (none to 0.1)"),
        ((1e-2, 1e-1, 1e-1), "≥ 0.1 (0.01 to more)"),
        ((1e-1, 1e-1, 1e-1), "≥ 0.1"),
        ((0.0, 0.0, 1e-2), "none from 0.001 up in 200 steps"),
    ):
        points = [
            made(cell, 1.2 if cell.config.lr <= limits[cell.seed] else 3.3) for cell in grid.cells
        ]
        (edge,) = frontier(grid, points)
        assert edge.text == text
        half = (
            "most seeds train at no rate tried"
            if edge.rate is None
            else "half of the seeds train up to"
        )
        assert half in report(grid, points)


def test_a_limit_says_at_which_rates_runs_only_lacked_steps() -> None:
    """Slow is not failed: one rate still fell, one is at chance, one diverged."""
    grid, points = one_scheme([3.2, 3.3, math.nan], ["learned little", "at chance", "diverged"])
    points[0] = made(points[0].cell, 3.2, falling=True)
    (edge,) = frontier(grid, points)
    assert edge.falling == (1e-3,)
    assert edge.text == "none from 0.001 up in 200 steps, still falling at 0.001"
    said = "trains at no rate tried from 0.001 up in 200 steps, still falling at 0.001"
    assert said in report(grid, points)
    points[1] = made(points[1].cell, 1.2)
    assert frontier(grid, points)[0].text == "0.01 (0.01 to 0.1)"


def test_what_has_not_run_is_no_rate_that_was_tried() -> None:
    """It said "0.01 (0.01 to 0.1)" while 0.1 was still missing."""
    grid, points = one_scheme([1.3, 1.2, 1.3])
    (edge,) = frontier(grid, points[:2])
    assert edge.is_last and edge.text == "≥ 0.01"


# Seeds


def test_a_spread_is_the_median_and_the_range() -> None:
    it = spread([1.0, 3.0, 2.0])
    assert (it.median, it.low, it.high, it.n, it.coverage) == (2.0, 1.0, 3.0, 3, 0.75)
    assert it.text(".1f") == "2.0 (1.0 to 3.0, 3 seeds)"
    assert spread([1.0]).text(".1f") == "1.0 (1 seed)"
    assert spread([1.0] * 5).coverage == pytest.approx(0.9375)


PAIRS = [
    ([1.2, 1.21, 1.19], [3.3, 3.31, 3.32], True),
    ([1.2, 1.21, 1.19], [1.21, 1.2, 1.2], False),  # either sign
    ([1.2, 1.2, 1.2], [1.21, 1.5, 3.3], False),  # one sign, but the interval holds zero
    ([1.2, 1.2], [3.3, 3.3], False),  # two pairs are too few
    ([1.2], [3.3], False),
    ([1.2, 1.3, 1.4], [1.2, 1.3, 1.4], False),
]


def test_what_is_told_apart() -> None:
    for first, second, differs in PAIRS:
        found = compare(first, second)
        assert found.differs is differs
        assert ("not distinguishable" in found.sentence("A", "B")) is not differs


def test_the_interval_is_students() -> None:
    """scipy.stats.ttest_rel([1, 2, 3], [2, 4, 6]).confidence_interval() is (-4.484, 0.484)."""
    found = compare([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    assert (found.low, found.high) == pytest.approx((-4.484, 0.484), abs=1e-3)
    assert (found.difference, found.differs) == (-2.0, False)


def test_the_report_compares_the_schemes_by_their_best() -> None:
    grid = make(RunConfig(), {"scheme": ("pre", "post"), "lr": RATES}, seeds=3)
    better = {"pre": 1.2, "post": 1.4}
    points = [made(c, better[c.config.scheme] + 0.1 * c.at[1] + 0.01 * c.seed) for c in grid.cells]
    assert "Pre-LN ends 0.200 nats below Post-LN" in report(grid, points)
    points = [made(c, 1.2 + 0.01 * (c.seed if c.at[0] else 1)) for c in grid.cells]
    assert "Pre-LN and Post-LN: not distinguishable with 3 seeds" in report(grid, points)


# To take away


def test_the_table_tells_finished_losses_from_others() -> None:
    grid, points = one_scheme([1.5, 3.3, math.nan], ["learned", "at chance", "diverged"])
    rows = table(grid, points)
    assert rows.lr.tolist() == list(RATES)
    assert rows.result.tolist() == ["learned", "at chance", "diverged"]
    assert rows.final_loss.isna().tolist() == [False, False, True]
    assert rows.capped_loss.tolist() == [1.5, 3.3, 3.3]
    assert rows.excess.iloc[0] == pytest.approx(0.4)
    assert isinstance(rows, pd.DataFrame)


def test_the_table_and_the_report_say_which_engine_computed_the_cells() -> None:
    grid, points = one_scheme([1.5, 1.2, 1.3])
    points = [replace(one, engine="tape" if i else "eager") for i, one in enumerate(points)]
    assert table(grid, points).engine.tolist() == ["eager", "tape", "tape"]
    said = (
        "1 of these 3 cells was computed with PyTorch's own operations, the others in NormViz's engine in "
        "C++."
    )
    assert said in report(grid, points).splitlines()
    assert "Computed in NormViz's engine in C++." in report(grid, points[1:]).splitlines()


@pytest.mark.slow
def test_the_map_marks_what_is_no_final_loss_and_draws() -> None:
    grid = make(RunConfig(), {"scheme": ("pre", "post"), "depth": (2, 4), "lr": RATES})
    kinds = {0: "learned", 1: "at chance", 2: "diverged"}
    points = [
        made(c, 1.2 if c.at[2] == 0 else 3.3, kinds[c.at[2]], falling=c.at[1:] == (0, 0))
        for c in grid.cells
    ]
    found = maps(grid, points)
    assert {one.title for one in found} == {"Pre-LN", "Post-LN"}
    assert {cell.mark for cell in found[0].cells} == {"falling", "", "diverged"}
    for words in ("1 seed", "× diverged", "▼ still falling"):
        assert words in found[0].note
    spec = chart(found)
    colors = [layer["layer"][0]["encoding"]["color"] for layer in spec["concat"]]
    assert [color["condition"]["scale"]["domain"] for color in colors] == [[FLOOR, CHANCE]] * 2
    assert len(picture(spec, "svg")) > 5000
    assert picture(spec, "png").startswith(b"\x89PNG")


def test_one_axis_is_a_map_beside_the_placement_or_the_rate() -> None:
    grid, points = one_scheme([1.5, 1.2, 3.3])
    (found,) = maps(grid, points)
    assert (found.columns, len(found.rows), found.frontier) == (("Pre-LN",), 3, (1,))
    assert b"Pre-LN" in picture(chart([found]), "svg")
    across, up = spanned(grid_of({"depth": "2,4"}, RunConfig()))
    assert ((across.field, up.field), len(up.values)) == (("depth", "lr"), 1)
    with pytest.raises(SweepError, match="a map needs a setting with several values"):
        spanned(grid_of({"scheme": "pre,post", "norm": "rmsnorm,layernorm"}, RunConfig()))
