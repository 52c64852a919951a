"""Sweeps in processes: what they store, reuse and survive."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from backend_kit import LONG, SHORT, keep, losses, wait_for

from normviz.catalog.probes import recorded_by
from normviz.execution import Began, Local, child
from normviz.execution.cell import measure, train_cell
from normviz.execution.child import Child
from normviz.player import ChartOptions, Sent, message
from normviz.result import result_of
from normviz.runs import collect
from normviz.runs.frames import Frames
from normviz.runs.lane import stored_lane
from normviz.runs.store import Query, Store, cells
from normviz.runs.verdict import LEARNED
from normviz.studies.maps import Done, Grid, Reused, make, missing, stored, sweep
from normviz.training.events import Diverged, Finished, Started, Step
from normviz.training.loop import train
from normviz.training.schedule import coarse

pytestmark = pytest.mark.slow

SLOW = LONG


def small() -> Grid:
    return make(SHORT, {"scheme": ["pre", "post"], "lr": [1e-3, 1e-2]})


def done(store: Store, grid: Grid, processes: int = 2) -> list[Done]:
    return [news for news in sweep(store, grid, processes) if isinstance(news, Done)]


def test_cells_are_bitwise_what_train_gives_and_a_second_start_runs_only_what_is_missing(
    store: Store,
) -> None:
    for lr in (1e-3, 1e-2):
        keep(store, SHORT.replace(lr=lr), "sweep")
    grid = small()
    assert {news.cell.config.scheme for news in done(store, grid, 1)} == {"post"}
    for cell in grid.cells:
        run = store.latest(cell.key)
        assert run is not None
        assert (run.status, run.origin, run.config) == ("finished", "sweep", cell.config)
        assert store.steps(run).loss.tolist() == losses(cell.config)
    assert missing(store, grid) == []
    again = list(sweep(store, grid, 2))
    assert all(isinstance(news, Reused) for news in again) and len(again) == 4


@pytest.mark.usefixtures("here")
def test_a_page_sees_what_a_terminal_trains(store: Store) -> None:
    grid = small()
    keys = [cell.key for cell in grid.cells]
    news = sweep(store, grid, 1)
    first = next(news)
    assert isinstance(first, Began)
    opened = cells.opened(store, keys, "a")
    assert opened is not None and not opened.may_stop
    assert opened.runs.keys() == set(keys) and opened.running == {first.task.key}
    while not isinstance(next(news), Done):
        pass
    opened = cells.opened(store, keys, "a")
    assert opened is not None and first.task.key not in opened.runs
    news.close()  # as Ctrl-C does
    assert cells.opened(store, keys, "a") is None and len(missing(store, grid)) == 3


def test_a_cell_opens_in_the_duel_with_a_few_layers(store: Store) -> None:
    config = SHORT.replace(steps=40)
    store.keep_all([measure(config)], "sweep")
    run = store.latest(config.key)
    assert run is not None
    assert coarse(config) == (0, 1, 2, 4, 8, 16, 32, 39)
    assert store.steps(run).layer_steps.tolist() == list(coarse(config))
    frames = Frames(store)
    lane = stored_lane("A", run, frames)
    told = message([lane], "grad_block", Sent(), live=False, options=ChartOptions())
    assert told["charts"]["heat0"] and told["lanes"][0]["records"] == list(coarse(config))
    assert len(result_of(frames.recording(run)).tidy())
    assert frames.verdict(run).kind in (*LEARNED, "at chance", "above")


def test_a_coarse_recording_never_hides_a_full_one(store: Store) -> None:
    """Neither one that is there, nor one that comes, nor one that a visitor is training now."""
    full = keep(store, SHORT, "here")
    coarse_one = keep(store, SHORT, "sweep")
    latest = store.latest(SHORT.key)
    assert latest is not None and latest.id == full < coarse_one

    other = SHORT.replace(init_seed=1)
    cell = keep(store, other, "sweep")
    latest = store.latest(other.key)
    assert latest is not None and latest.id == cell
    trained = store.enqueue(other)
    latest = store.latest(other.key)
    assert latest is not None and latest.id == trained
    store.end(trained, "stopped")
    latest = store.latest(other.key)
    assert latest is not None and latest.id == cell


def test_a_shipped_run_is_adopted_beside_a_coarse_one(store: Store) -> None:
    keep(store, SHORT, "sweep")
    store.adopt(collect(train(SHORT)))
    latest = store.latest(SHORT.key)
    assert latest is not None and latest.origin == "shipped"


def test_a_full_recording_is_a_cell_already(store: Store) -> None:
    keep(store, SHORT, "here")
    assert missing(store, make(SHORT, {})) == []


def test_a_diverged_cell_is_a_result(store: Store) -> None:
    lost = SHORT.replace(scheme="none", optimizer="sgd", lr=10.0, momentum=0.99)
    measured = measure(lost)
    assert measured.status == "diverged" and measured.first_bad is not None
    store.keep_all([measured], "sweep")
    found = stored(store, lost.key)
    assert found is not None and found.first_bad == measured.first_bad


def test_a_run_is_kept_as_a_whole_or_not_at_all(store: Store) -> None:
    started = Started(SHORT, "cpu", 1, 10, 3.3, 1.1, None)
    twice = [Step(0, 3.0, 1e-3, 1.0, None)] * 2  # the same step twice: the database refuses
    with pytest.raises(Exception, match="UNIQUE"):
        store.keep_all([collect([started, *twice, Finished(2)])], "sweep")
    assert store.latest(SHORT.key) is None
    ended = collect([started, twice[0], Diverged(0, 1, "loss"), Finished(1)])
    (run,) = store.keep_all([replace(ended, began=0.0, ended=2.0)], "sweep")
    record = store.run(run)
    assert record is not None
    assert record.seconds == pytest.approx(2.0, abs=0.5)
    assert record.probes == recorded_by("one")


def test_cells_do_not_bury_a_visitors_own_runs(store: Store) -> None:
    own = keep(store, SHORT, "here")
    cell = keep(store, SHORT.replace(init_seed=1), "sweep")
    shipped = keep(store, SHORT.replace(init_seed=2), "shipped")
    assert [run.id for run in store.listed(Query(), 10).runs] == [own, cell, shipped]
    assert store.delete(cell) is None


@pytest.mark.usefixtures("here")
def test_ctrl_c_inside_the_write_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, pressed = Store.keep_all, [True]

    def interrupted(self: Store, *words) -> list[int]:
        if pressed.pop() if pressed else False:
            raise KeyboardInterrupt
        return original(self, *words)

    monkeypatch.setattr(Store, "keep_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        done(store, make(SHORT, {}))
    assert missing(store, make(SHORT, {})) == []


# Deaths


def test_a_death_fails_only_its_cell_and_is_tried_once_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first three processes that are given a cell are killed: two of the first cell, one of the other."""
    left, give = [signal.SIGKILL] * 3, Child.give

    def killed(child: Child, *words) -> bool:
        given = give(child, *words)
        if left:
            os.kill(child.process.pid, left.pop())
        return given

    monkeypatch.setattr(Child, "give", killed)
    ended = {news.cell.config.scheme: news for news in done(store, small_pair(), processes=1)}
    assert (ended["post"].measured.status, ended["post"].measured.id > 0) == ("finished", True)
    assert ended["pre"].measured.message == "its process was killed by signal 9, twice"
    assert not ended["pre"].measured.id
    assert [c.config.scheme for c in missing(store, small_pair())] == ["pre"]


def test_a_result_that_cannot_be_read_fails_only_its_cell(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The map goes on, and says what went wrong."""
    errors = [ModuleNotFoundError("No module named 'x'")]
    left, loads = errors[::-1], pickle.loads

    def unreadable(message: bytes) -> object:
        if left:
            raise left.pop()
        return loads(message)

    monkeypatch.setattr(child.pickle, "loads", unreadable)
    until = time.monotonic() + 300
    grid = make(SHORT, {"init_seed": list(range(len(errors) + 1))})
    news = list(sweep(store, grid, 1, stop=lambda: time.monotonic() > until))
    *unread, last = [one for one in news if isinstance(one, Done)]
    for ended, error in zip(unread, errors, strict=True):
        said = f"its process gave no result: {type(error).__name__}"
        assert (ended.measured.message or "").startswith(said)
        assert not ended.measured.id
    assert last.measured.status == "finished" and last.measured.id


def test_a_process_that_does_not_start_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normviz.execution.process.sys.executable", str(store.folder / "nowhere"))
    for ended in done(store, small_pair(), processes=1):
        assert "gave no result: FileNotFoundError: " in (ended.measured.message or "")


def small_pair() -> Grid:
    return make(SHORT, {"scheme": ["pre", "post"]})


def test_closing_ends_every_process(store: Store) -> None:
    tasks = {cell: (cell.config.canonical(),) for cell in make(SLOW, {"lr": [1e-3, 1e-2]}).cells}
    pool = Local(train_cell, tasks, store.folder, 2)
    events = pool.events()
    assert [next(events), next(events)] == [Began(cell) for cell in tasks]
    pids = pool.pids
    assert len(pids) == 2
    assert pool.close() == []
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), "their end")


TOLD = """
import sys
import time
from pathlib import Path
from normviz import RunConfig
from normviz.runs.store import Store, Query
from normviz.studies.maps import Done, make, sweep
grid = make(RunConfig(**eval(sys.argv[2])), {"steps": [20, 20000]})
for news in sweep(Store(Path(sys.argv[1])), grid, 2):
    if isinstance(news, Done):
        print(news.cell.config.steps, flush=True)
"""


def test_a_kill_keeps_every_cell_that_has_ended(tmp_path: Path) -> None:
    """And leaves no process behind."""
    settings = SHORT.model_dump(exclude={"steps", "lr"})
    driver = subprocess.Popen(
        [sys.executable, "-c", TOLD, str(tmp_path), repr(settings)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with driver:
        assert driver.stdout is not None
        first = driver.stdout.readline()
        children = workers(driver.pid)
        driver.kill()
        rest = driver.communicate(timeout=60)[0]
    told = [first, *rest.splitlines()]
    store = Store(tmp_path)
    kept = store.db.connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0]
    assert kept >= len([line for line in told if line.strip()]) >= 1
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in children), "their end")


def workers(driver: int) -> list[int]:
    """The driver's child processes."""
    found = [child.pid for child in psutil.Process(driver).children()]
    assert found
    return found
