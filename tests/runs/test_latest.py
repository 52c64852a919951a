"""Which of a config's runs is its result, on the page and for a sweep, however many there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from backend_kit import keep
from test_store import CONFIG, begin, dead_pid

from normviz import RunConfig
from normviz.runs import collect
from normviz.runs.store import Store
from normviz.studies.maps import make, missing, stored
from normviz.studies.maps.early import FLAT
from normviz.training.events import Started, Step


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
    """Neither a finished run, nor a cell that a sweep stopped because it was flat at chance."""
    done = RunConfig(depth=6, steps=40)
    flat = done.replace(scheme="post")  # where the rule of the early stop applies
    started = Started(flat, "cpu", 1, 10, 3.3, 1.1, None)
    ended = collect([started, Step(0, 3.3, 1e-3, 1.0, None)])
    results = {
        done.key: keep(store, done, "sweep"),
        flat.key: store.keep_all([replace(ended, message=f"{FLAT}0")], "sweep")[0],
    }
    for _ in range(60):
        for config in (done, flat):
            store.end(store.enqueue(config), "stopped")
    for key, run in results.items():
        assert (found := stored(store, key, early=True)) is not None and found.id == run
    assert stored(store, flat.key, early=False) is None
    assert missing(store, make(done, {"scheme": ["pre", "post"]}), early=True) == []
