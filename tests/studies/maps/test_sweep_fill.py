"""Maps that a server fills: one at a time, joined, stopped, and none lost to another's error."""

from __future__ import annotations

import threading

import pytest
from backend_kit import LONG, SHORT, wait_for
from normviz.studies.maps.fill import MapJobs

from normviz.runs.store import Store
from normviz.studies.maps import Grid, make, missing

SLOW = LONG


def grid(config=SHORT, **axes) -> Grid:
    return make(config, axes or {"lr": [1e-3, 1e-2]})


@pytest.mark.slow
def test_a_stop_ends_its_processes_and_the_next_map_fills(store: Store) -> None:
    filler = MapJobs(store, 2)
    slow = filler.request(grid(SLOW))
    waits, gone = filler.request(grid()), filler.request(grid(depth=[1, 2]))
    assert filler.request(grid()) is waits  # who asks for the same joins
    assert (filler.before(waits), filler.before(gone)) == (1, 2)
    filler.stop(gone)
    assert not gone.is_open
    wait_for(lambda: slow.running, "a cell in training")
    assert slow.is_open and not waits.running
    filler.stop(slow)
    wait_for(lambda: not slow.is_open, "the stop")
    wait_for(lambda: not waits.is_open, "the next")
    assert (slow.ended, slow.running) == (0, set())
    assert (waits.todo, waits.ended, waits.failures) == (2, 2, [])
    assert waits.share == pytest.approx(1.0)
    assert missing(store, grid()) == [] and missing(store, grid(depth=[1, 2]))
    assert filler.job(grid()) is None
    again = filler.request(grid())
    wait_for(lambda: not again.is_open, "the end of one with nothing to do")
    assert again.todo == 0


@pytest.mark.slow
def test_an_error_ends_one_map_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    filler = MapJobs(store, 1)
    keep = store.keep_all

    def full(*_: object) -> list[int]:
        monkeypatch.setattr(store, "keep_all", keep)
        raise OSError("database or disk is full")

    monkeypatch.setattr(store, "keep_all", full)
    lost, fine = (filler.request(grid(depth=[n])) for n in (1, 2))
    wait_for(lambda: not lost.is_open and not fine.is_open, "both ends")
    assert lost.failures == ["database or disk is full"]
    assert (fine.ended, fine.failures) == (1, [])


@pytest.mark.slow
def test_two_lines_that_share_a_turn_take_it_in_turns(store: Store) -> None:
    """As maps and claims of a shared server do: each is a process with PyTorch."""
    turn = threading.Lock()
    one, other = MapJobs(store, 1, turn), MapJobs(store, 1, turn)
    slow = one.request(grid(SLOW))
    wait_for(lambda: slow.running, "a cell in training")
    waits, gone = other.request(grid()), other.request(grid(depth=[1, 2]))
    other.stop(gone)
    assert waits.waits and not slow.waits and not waits.running
    other.stop(waits)
    wait_for(lambda: not waits.is_open, "the end of one that is stopped while it waits")
    assert slow.is_open and waits.ended == 0
    waits = other.request(grid())
    one.stop(slow)
    wait_for(lambda: not waits.is_open, "the other's end")
    assert waits.ended == 2 and not slow.is_open
