"""Which of a config's runs is its result, on the page and for a sweep, however many there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from backend_kit import keep
from test_store import CONFIG, begin, dead_pid

from normviz import RunConfig
from normviz.runs import Recording, collect
from normviz.runs.store import Origin, Store
from normviz.studies.maps import make, missing, stored
from normviz.studies.maps.drive import found
from normviz.training.events import Finished, Started, Step


def closed(store: Store, status: str) -> int:
    if status == "queued":
        return store.enqueue(CONFIG)
    run = begin(store)
    if status == "paused":
        store.set_status(run, "paused")
    elif status != "running":
        store.end(run, status)
    return run


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("finished", ["running", "queued", "stopped", "failed"]),
        ("diverged", ["running", "stopped", "failed"]),
        ("running", ["stopped", "failed"]),
        ("paused", ["stopped", "failed"]),
        ("queued", ["stopped", "failed"]),
        ("stopped", ["failed"]),
    ],
)
def test_the_run_that_shows_most_is_chosen(store: Store, better: str, worse: list[str]) -> None:
    best = closed(store, better)
    for status in worse:
        closed(store, status)
    latest = store.latest(CONFIG.key)
    assert latest is not None
    assert latest.id == best


def test_of_equals_the_newest_is_chosen(store: Store) -> None:
    closed(store, "finished")
    newest = closed(store, "finished")
    latest = store.latest(CONFIG.key)
    assert latest is not None
    assert latest.id == newest


@pytest.mark.parametrize("result", ["finished", "diverged"])
def test_no_number_of_attempts_hides_a_result(store: Store, result: str) -> None:
    best = closed(store, result)
    for status in ("stopped", "failed"):
        for _ in range(60):
            closed(store, status)
    latest = store.latest(CONFIG.key)
    assert latest is not None and latest.id == best
    assert [run.id for run in store.results(CONFIG.key)] == [best]


def test_what_has_no_process_any_more_ranks_as_failed(store: Store) -> None:
    """A row may still say that it runs; among the failed ones the newest is chosen, as ever."""
    stopped = closed(store, "stopped")
    gone = begin(store, pid=dead_pid())
    latest = store.latest(CONFIG.key)
    assert latest is not None and latest.id == stopped
    store.delete(stopped)
    closed(store, "failed")
    newest = begin(store, pid=dead_pid())
    latest = store.latest(CONFIG.key)
    assert latest is not None and (latest.id, latest.status) == (newest, "failed") and newest > gone


def test_a_result_that_cannot_be_read_hides_none(store: Store) -> None:
    best = closed(store, "finished")
    for _ in range(60):
        damaged = closed(store, "finished")
        store.db.connection.execute("UPDATE runs SET config = '{}x' WHERE id = ?", (damaged,))
    latest = store.latest(CONFIG.key)
    assert latest is not None and latest.id == best


@pytest.mark.slow
def test_stopped_attempts_do_not_hide_a_cells_result(store: Store) -> None:
    done = RunConfig(depth=6, steps=40)
    run = keep(store, done, "sweep")
    for _ in range(60):
        store.end(store.enqueue(done), "stopped")
    assert (it := stored(store, done.key)) is not None and it.id == run
    assert missing(store, make(done, {"lr": [done.lr]})) == []


def test_many_cells_are_found_in_one_question_as_each_alone(store: Store) -> None:
    grid = make(CONFIG, {"lr": [1e-3, 2e-3, 3e-3]})
    first, second, third = grid.cells
    store.adopt_cells([collect_one(first.config), collect_one(second.config)])
    store.keep_all([collect_one(first.config)], "sweep")
    asked = list[str]()
    store.db.connection.set_trace_callback(asked.append)
    both = found(store, grid.cells)
    store.db.connection.set_trace_callback(None)
    assert len(asked) == 1
    for shipped in (True, False):
        alone = {cell: stored(store, cell.key, shipped) for cell in grid.cells}
        there = {cell: run.id for cell, run in found(store, grid.cells, shipped).items()}
        assert there == {cell: run.id for cell, run in alone.items() if run}
    assert both.keys() == {first, second} and missing(store, grid) == [third]


def collect_one(config: RunConfig) -> Recording:
    started = Started(config, "cpu", 1, 10, 3.3, 1.1, None)
    return collect([started, Step(0, 3.3, 1e-3, 1.0, None), Finished(1)])


@pytest.mark.parametrize("origin", ["sweep", "shipped sweep"])
def test_a_cell_that_an_older_release_stopped_early_is_no_result(
    store: Store, origin: Origin
) -> None:
    """It is trained again, or comes from those that ship now."""
    started = Started(CONFIG, "cpu", 1, 10, 3.3, 1.1, None)
    ended = collect([started, Step(0, 3.3, 1e-3, 1.0, None)])
    store.keep_all([replace(ended, message="flat at chance since step 0")], origin)
    grid = make(CONFIG, {})
    assert stored(store, CONFIG.key) is None and store.done_keys() == set()
    assert missing(store, grid) == list(grid.cells)
    store.adopt_cells([replace(ended, status="finished")])
    assert missing(store, grid) == []
