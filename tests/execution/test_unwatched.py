"""What nobody has open ends, and says so; what somebody has open goes on, whatever the clocks do."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from backend_kit import LONG, SHORT, Lane, wait_for
from hosted_kit import supervisor, turn_on
from hypothesis import given
from hypothesis import strategies as st
from normviz.app.session.open_pages import OpenPages

from normviz import RunConfig
from normviz.config import estimated_gib
from normviz.execution import housekeeping
from normviz.execution.housekeeping import Housekeeper, UnwatchedRuns, too_many
from normviz.execution.supervisor import Supervisor
from normviz.runs import UNWATCHED
from normviz.runs.frames import Frames
from normviz.runs.store import Store, StoreFull, cells


class Visited(Lane):
    """A run that somebody on a page asked for."""

    def __init__(self, store: Store, config: RunConfig, visitor: str = "a") -> None:
        self.store, self.id = store, store.enqueue(config, visitor=visitor)


LARGE = LONG.replace(batch=64, steps=2000)
"""Its estimate is several times that of LONG."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Path]]:
    """The store of a shared server that gives a run 6 s and has memory for a LARGE one, and its log. With
    less, a test that gets no core for a moment has not told that it watches."""
    folder, gib = tmp_path_factory.mktemp("shared"), estimated_gib(LARGE) + estimated_gib(LONG) / 2
    with supervisor(folder, grace=6.0, said=folder / "said", slots=2, all_gib=gib):
        yield Store(folder), folder / "said"


def events(said: Path, *runs: Lane) -> list[dict[str, Any]]:
    """What the log says of these runs."""
    numbers, lines = {run.id for run in runs}, said.read_text().splitlines()
    logged = [json.loads(line) for line in lines if line.endswith("}")]
    assert all({"time", "level", "event"} <= line.keys() for line in logged)
    return [line for line in logged if line.get("run") in numbers]


def watch(runs: list[Lane], done: Callable[[], object], what: str) -> None:
    """Somebody has these runs open until then."""
    wait_for(lambda: runs[0].store.count_views([run.id for run in runs]) or done(), what)


@pytest.mark.slow
def test_an_unwatched_run_ends_and_a_watched_one_goes_on(shared: tuple[Store, Path]) -> None:
    """One trains, one is paused, the others wait: all of them end. The terminal's own is not touched."""
    store, said = shared
    paused, alone = Visited(store, LONG), Visited(store, LONG)
    watch([paused, alone], lambda: paused.n >= 2 and alone.n >= 1, "two steps")
    store.control(paused.id, "pause")
    watch([paused, alone], lambda: paused.status == "paused", "its pause")
    terminal, watched = Lane(store, LONG), Visited(store, LONG.replace(lr=0.01), "b")
    more = [Visited(store, LONG.replace(init_seed=s), "c") for s in range(1, 3)]
    opened = [paused, alone, *more]
    watch([watched], lambda: all(one.status == "stopped" for one in opened), "their end")
    for one in opened:
        assert one.run.message == UNWATCHED
        verdict = Frames(store).verdict(one.run)
        assert verdict.sentence == f"stopped unwatched after {one.n} steps: {UNWATCHED}"
    assert paused.n >= 2 and paused.steps.step.tolist() == list(range(paused.n))
    watch([watched], lambda: terminal.status == watched.status == "running", "the others to train")
    terminal.stop()
    watched.stop()
    assert watched.run.message is None
    after = Visited(store, SHORT)
    watch([after], lambda: after.status == "finished", "its end, after those processes have ended")
    unwatched = {line["run"] for line in events(said, *opened) if line["event"] == "unwatched"}
    assert unwatched == {one.id for one in opened}
    assert not [e for e in events(said, terminal, watched) if e["event"] == "unwatched"]
    about = [line["event"] for line in events(said, paused)]
    assert about[-1] == "unwatched" and "died" not in about  # it was told to go
    handed = {
        line["run"]: line.get("visitor")
        for line in events(said, terminal, watched)
        if line["event"] == "handed out"
    }
    assert handed == {terminal.id: None, watched.id: "b"}


@pytest.mark.slow
def test_a_run_and_its_process_are_told_as_they_end(shared: tuple[Store, Path]) -> None:
    store, said = shared
    short, killed = Visited(store, SHORT), Visited(store, LONG)
    watch([short, killed], lambda: short.status == "finished" and killed.n >= 3, "three steps")
    os.kill(killed.pid, signal.SIGKILL)
    killed.reach("failed")
    for run, last in ((short, "ended"), (killed, "died")):
        wait_for(
            lambda run=run, last=last: last in [line["event"] for line in events(said, run)],
            f"{last} in the log",
        )
    about = [[(line["event"], line["level"]) for line in events(said, r)] for r in (short, killed)]
    begun = {("handed out", "info"), ("started", "info")}  # by two processes, in either order
    for lines, last in zip(about, (("ended", "info"), ("died", "warning")), strict=True):
        assert ({*lines[:-1]}, lines[-1], len(lines)) == (begun, last, 3)
    (end,) = [line for line in events(said, short) if line["event"] == "ended"]
    assert (end["status"], end["visitor"]) == ("finished", "a")


@pytest.mark.slow
def test_a_run_waits_for_the_memory_of_a_paused_one_and_then_gets_it(
    shared: tuple[Store, Path],
) -> None:
    """There is a slot and a warm worker for it all the time; the paused one is watched."""
    store, _ = shared
    paused = Visited(store, LARGE, "a")
    watch([paused], lambda: paused.n, "a step")
    store.control(paused.id, "pause")
    watch([paused], lambda: paused.status == "paused", "its pause")
    waiting = Visited(store, LONG.replace(lr=0.01), "b")

    def held() -> str:
        begun = waiting.status != "queued"  # before the other's is read
        status = paused.status
        assert status == "stopped" or not begun
        return status

    watch([paused, waiting], lambda: held() == "stopped", "its end")
    assert paused.run.message == "paused while many others waited"
    assert paused.steps.step.tolist() == list(range(paused.n)) and paused.n
    watch([waiting], lambda: waiting.n, "a step of the other")
    oom = Path(f"/proc/{waiting.pid}/oom_score_adj")
    if oom.exists():  # the kernel takes a worker first
        parent = psutil.Process(waiting.pid).parent()
        assert parent is not None
        supervisors = Path(f"/proc/{parent.ppid()}/oom_score_adj").read_text()
        assert int(oom.read_text()) == 500 > int(supervisors)
    waiting.stop()


def test_a_clock_that_jumps_ends_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock is not looked at; a machine that slept wakes with its runs."""
    turn_on(monkeypatch, store, grace=5.0)
    caretaker, now, wall = Housekeeper(store), time.monotonic(), time.time()
    run = store.enqueue(SHORT, visitor="a")
    clock = [now]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for jump in (1e9, -1e9, 0.0):
        monkeypatch.setattr(time, "time", lambda jump=jump: wall + jump)
        clock[0] += 1.5
        assert caretaker.round() == []
    clock[0] += 3600  # it slept for an hour
    assert caretaker.round() == []
    for _ in range(3):
        clock[0] += 1.1
        found = caretaker.round()
    assert found == [run]


def test_while_the_disk_is_full_nobody_is_taken_for_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages can't write that they watch."""
    turn_on(monkeypatch, store, grace=5.0)
    full: list[str | None] = ["The disk is full"]
    monkeypatch.setattr(housekeeping, "scarce", lambda folder: full[0])
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    caretaker, run = Housekeeper(store), store.enqueue(SHORT, visitor="a")

    def rounds(n: int) -> list[int]:
        found: list[int] = []
        for _ in range(n):
            clock[0] += 1.1
            found += caretaker.round()
        return found

    assert rounds(60) == []
    full[0] = None
    assert rounds(4) == []
    store.count_views([run])
    assert rounds(5) == [] and rounds(1) == [run]


def test_an_end_that_can_not_be_written_keeps_nothing_else_from_its_turn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written down later, with its own reason."""
    turn_on(monkeypatch, store)
    supervised, unwatched = Supervisor(store, 1), store.enqueue(SHORT, visitor="a")
    stopped = store.enqueue(SHORT, visitor="b")
    store.control(stopped, "stop")
    end = Store.end

    def full(*_: object, **__: object) -> None:
        raise StoreFull("the disk may be full")

    monkeypatch.setattr(Store, "end", full)
    monkeypatch.setattr(supervised.housekeeper, "round", lambda: [unwatched])
    supervised.stop_unwatched()
    supervised.make_stops_certain()
    waits = store.enqueue(SHORT, visitor="c")
    supervised.hand_out()
    assert supervised.waiting == 1 and store.queued() == [unwatched, stopped, waits]
    monkeypatch.setattr(Store, "end", end)
    supervised.pending_ends.settle()
    ended = [store.run(run) for run in (unwatched, stopped)]
    assert [(run.status, run.message) for run in ended if run] == [
        ("stopped", UNWATCHED), ("stopped", None)
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), st.integers(1, 6))
def test_a_run_is_overdue_when_its_count_has_not_moved(
    events: list[tuple[int, bool]], grace: int
) -> None:
    """Against a plain list of when each was last looked at; one second a round."""
    unwatched, counts, last = UnwatchedRuns(grace), {}, {}
    for now, (run, looked) in enumerate(events):
        if run not in counts or looked:
            counts[run] = counts.get(run, 0) + 1
            last[run] = now
        assert sorted(unwatched.update(counts, now)) == sorted(
            r for r in counts if now - last[r] > grace
        )


def test_who_pauses_most_loses_their_first_ones() -> None:
    """Not whoever paused first: one visitor can't push the others' runs out."""
    assert too_many({1: None, 2: None, 3: None}, 2) == [1]
    assert too_many({1: "a", 2: "b", 3: "b", 4: "b", 5: "c"}, 3) == [2, 3]
    assert too_many({1: "a", 2: "b"}, 2) == []


# Who tells


def test_all_open_pages_are_told_in_one_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch, store)
    pages = {"one", "two", "gone"}
    watchers = OpenPages(store, pages.__contains__)
    seen, other, ended = (store.enqueue(SHORT, visitor="a") for _ in range(3))
    store.end(ended, "stopped")
    for page in sorted(pages):
        watchers.begin(page)
        watchers.has_open(page, [seen, ended])
    watchers.has_open("gone", [other])
    assert watchers.others("one", seen) and not watchers.others("gone", other)
    pages.discard("gone")
    writes: list[list[int]] = []
    monkeypatch.setattr(store, "count_views", lambda runs: writes.append(list(runs)))
    watchers.refresh()
    assert writes == [[seen]]
    watchers.begin("one")
    watchers.begin("two")  # both show something else now
    watchers.refresh()
    assert writes == [[seen]]


def test_two_servers_of_one_store_tell_of_their_own_pages(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch, store)
    servers = [OpenPages(Store(store.folder), lambda page: True) for _ in range(2)]
    runs = [store.enqueue(SHORT, visitor=visitor) for visitor in "ab"]
    for watchers, run in zip(servers, runs, strict=True):
        watchers.begin("one", [run])
        watchers.refresh()
    assert store.view_counts() == dict.fromkeys(runs, 1)


def test_outside_of_hosted_mode_nobody_is_counted(store: Store) -> None:
    watchers = OpenPages(store, lambda page: True)
    run = store.enqueue(SHORT, visitor="a")
    watchers.begin("one")
    watchers.has_open("one", [run])
    watchers.refresh()
    assert store.view_counts() == {run: 0} and watchers._thread is None


def test_cells_that_nobody_has_open_are_stopped_like_runs(store: Store) -> None:
    cells.ask(store, [SHORT], "map", "a")
    (cell,) = store.queued(cells=True)
    assert store.view_counts() == {cell: 0}
    store.count_views([cell])
    assert store.view_counts() == {cell: 1}
