"""The maps that ship: every cell is there and is what `train` gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from backend_kit import SHORT, losses
from cli_kit import normviz
from crossing_kit import case

from normviz import RunConfig
from normviz.catalog.probes import recorded_by
from normviz.catalog.registry import Registry
from normviz.cli import ship
from normviz.execution.cell import measure
from normviz.home import shipped
from normviz.runs.archive import load, save_cells
from normviz.runs.shipped import adopt_cells, cell_keys, cells
from normviz.runs.store import Store
from normviz.studies.maps import grid_of, make, missing
from normviz.studies.maps.layout import maps
from normviz.studies.maps.link import standard
from normviz.studies.maps.points import Point
from normviz.studies.maps.results import GridResults
from normviz.studies.maps.standard import MAPS, Standard
from normviz.studies.maps.summary import by_place, edge_rows, frontier, trains

pytestmark = pytest.mark.slow
Maps = Callable[[str], list[Point]]


@pytest.fixture(scope="module")
def modern(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with the cells of one map."""
    store = Store(tmp_path_factory.mktemp("maps"))
    adopt_cells(store, {cell.key for cell in standard("modern").grid.cells})
    return store


def test_a_page_has_the_results_that_ship_without_a_store_of_them(
    modern: Store, store: Store
) -> None:
    """The same as those of a store that has them, but for their time."""
    grid = standard("modern").grid
    here, there = GridResults(store, grid), GridResults(modern, grid)
    here.refresh()
    there.refresh()
    assert not here.missing and store.done_keys() == set() and missing(modern, grid) == []
    for one, other in zip(
        here.points, there.points, strict=True
    ):  # the store counts time from its epoch
        assert one.seconds == pytest.approx(other.seconds, abs=0.01)
        assert one == replace(other, seconds=one.seconds)
    assert here.curve(here.points[:3]) == there.curve(there.points[:3])


def test_every_cell_of_a_standard_map_ships() -> None:
    for key in MAPS.keys():  # noqa: SIM118 (a registry)
        with case(key):
            one = standard(key)
            assert one.grid.seeds >= 3
            assert {cell.key for cell in one.grid.cells} <= cell_keys()
            assert grid_of(MAPS[key].words, RunConfig()).cells
            assert one.fields == (MAPS[key].across, MAPS[key].up)


def test_every_cell_that_ships_is_a_result() -> None:
    found = set()
    for path in [*_files("maps"), *_files("claims")]:
        for it in load(path):
            assert it.status in ("finished", "diverged"), (path.name, it.key)
            found.add(it.key)
    assert found == cell_keys()


def test_one_cell_comes_without_the_others(store: Store, modern: Store) -> None:
    key = standard("modern").grid.cells[7].key
    adopt_cells(store, {key})
    adopt_cells(store, {key})
    assert store.db.connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0] == 1
    one, same = store.latest(key), modern.latest(key)
    assert one is not None and same is not None
    assert one.is_done and one.is_shipped and one.is_coarse
    assert one.stays  # nobody deletes it
    ours, theirs = store.recording(one), modern.recording(same)
    assert (ours.key, ours.verdict) == (theirs.key, theirs.verdict)
    np.testing.assert_array_equal(ours.steps.layers, theirs.steps.layers)
    adopt_cells(store, {"e2-0123456789abcdef"})  # nothing ships of it
    assert list(load(_files("maps")[0], cell_keys())) == []


@pytest.fixture(scope="module")
def maps_of(tmp_path_factory: pytest.TempPathFactory) -> Maps:
    """The points of a standard map, each read once."""
    empty = Store(tmp_path_factory.mktemp("empty"))

    def points(key: str) -> list[Point]:
        results = GridResults(empty, standard(key).grid)
        results.refresh()
        return results.points

    return cache(points)


def of(found: list[Point], scheme: str) -> list[Point]:
    return [p for p in found if p.cell.config.scheme == scheme]


def test_post_ln_stands_lower_rates_the_deeper_it_is(maps_of: Maps) -> None:
    edges = frontier(standard("torch").grid, of(maps_of("torch"), "post"))
    depths = [dict(edge.place)["depth"] for edge in edges]
    rates = [edge.rate or 0.0 for edge in edges]
    assert depths == sorted(depths) == [2, 4, 8, 16, 32, 64]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0] / 50


def test_fewer_than_half_of_the_rows_end_at_the_largest_rate_tried(maps_of: Maps) -> None:
    """So the table tells placements apart: it did not while five of eight rows ended there."""
    rows = [
        edges
        for key in ("torch", "xavier")
        for edges in edge_rows(standard(key).grid, maps_of(key), "depth").values()
    ]
    assert len(rows) == 8
    assert sum(all(text.startswith("≥") for text in edges.values()) for edges in rows) < 4
    assert rows[1]["64"] == "0.03 (0.01 to 0.1)" and rows[2]["64"] == "≥ 0.1"  # Pre-LN and Peri-LN


def test_no_row_ends_at_the_largest_rate_tried_once_higher_ones_are(maps_of: Maps) -> None:
    rows = edge_rows(standard("high").grid, maps_of("high"), "depth")
    texts = [text for edges in rows.values() for text in edges.values()]
    assert len(texts) == 24
    assert not any("≥" in text or "more" in text or text.startswith("none") for text in texts)


def test_peri_ln_trains_in_every_cell_from_a_thousandth(maps_of: Maps) -> None:
    places = by_place(standard("torch").grid, of(maps_of("torch"), "peri"))
    at_least = [seeds for seeds in places.values() if seeds[0].cell.config.lr >= 1e-3]
    assert len(at_least) == 30
    assert all(trains(seeds) for seeds in at_least)
    assert all(one.trains for seeds in at_least for one in seeds)


def test_with_rmsnorm_and_qk_norm_the_placement_decides_the_rate(maps_of: Maps) -> None:
    it, measured = standard("modern"), maps_of("modern")
    found = {dict(edge.place)["scheme"]: edge.rate for edge in frontier(it.grid, measured)}
    assert found == {"pre": 0.1, "post": None, "peri": 0.3, "resp": 0.3, "deepnorm": 0.01}
    (drawn,) = maps(it.grid, measured, it.fields)
    assert drawn.title == "Placement × learning rate"
    assert drawn.columns == ("Pre-LN", "Post-LN", "Peri-LN", "Res-post-norm", "DeepNorm")


def test_a_shipped_cell_is_what_training_gives() -> None:
    """Up to rounding, which differs between machines and grows in the steps."""
    config = RunConfig(scheme="post", init="torch", depth=2, lr=3e-3, steps=150)
    ((ships,), fresh) = cells({config.key}), losses(config)
    np.testing.assert_allclose(ships.losses, fresh, rtol=5e-3)
    assert ships.losses[:5].tolist() == pytest.approx(fresh[:5], rel=1e-5)
    assert ships.steps.layer_steps[[0, -1]].tolist() == [0, 149]


def _files(folder: str) -> list[Path]:
    return sorted((shipped("assets") / folder).glob("*.npz"))


@pytest.mark.usefixtures("here")
def test_only_the_maps_that_are_named_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"depth": "1,2", "lr": "0.001,0.01", "width": "16", "heads": "2", "seq_len": "8",
             "batch": "4", "steps": "10"}  # fmt: skip
    both = [
        Standard(key, key, "", {**words, "scheme": schemes}, "depth", "lr")
        for key, schemes in (("first", "pre"), ("second", "pre,post"))
    ]
    monkeypatch.setattr(ship, "MAPS", Registry("map", both))
    where = ("--data", str(tmp_path / "data"), "--folder", str(tmp_path))
    assert normviz("ship-maps", "second", *where).exit_code == 0
    assert [path.name for path in tmp_path.glob("*.npz")] == ["second.npz"]
    # Four of its cells are the first map's, and are written there.
    assert [it.config.scheme for it in load(tmp_path / "second.npz")] == ["post"] * 4
    said = normviz("ship-maps", "third", *where)
    assert said.exit_code == 2
    assert said.stderr == "normviz: unknown map 'third': allowed are first, second.\n"


# Files


def test_a_file_gives_back_what_was_stored(store: Store, tmp_path: Path) -> None:
    grid = make(SHORT, {"lr": [1e-3, 1e-2], "scheme": ["post", "none"]})
    lost = SHORT.replace(scheme="none", optimizer="sgd", lr=10.0, momentum=0.99)
    for one in [*(cell.config for cell in grid.cells), lost]:
        store.keep_all([measure(one)], "sweep")
    keys = [cell.key for cell in grid.cells] + [lost.key]
    runs = [run for key in keys if (run := store.latest(key))]
    path = tmp_path / "maps.npz"
    save_cells(map(store.recording, runs), path)
    (tmp_path / "other").mkdir()
    other = Store(tmp_path / "other")
    other.keep_all(list(load(path)), "shipped sweep")
    for run in runs:
        twin = other.latest(run.key)
        assert twin is not None
        for name in ("config", "started", "status", "message", "first_bad"):
            assert getattr(twin, name) == getattr(run, name), name
        mine, theirs = store.steps(run), other.steps(twin)
        np.testing.assert_array_equal(theirs.loss, mine.loss)
        np.testing.assert_array_equal(theirs.grad_norm, mine.grad_norm)
        np.testing.assert_array_equal(theirs.lr, mine.lr)
        np.testing.assert_array_equal(theirs.held_out, mine.held_out)
        assert theirs.layers.shape[1:] == (len(recorded_by("one")), run.config.depth + 1)
        np.testing.assert_allclose(theirs.layers[0], mine.layers[0], rtol=1e-6)
    assert list(load(path, set(keys))) == []
