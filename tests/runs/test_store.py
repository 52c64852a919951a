"""The store: numbers come back bit for bit, statuses are true, and a bad file gets a sentence."""

from __future__ import annotations

import math
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from backend_kit import wait_for

from normviz import RunConfig
from normviz.catalog.probes import recorded_by
from normviz.cli.places import data_folder
from normviz.config import ConfigError
from normviz.home import VARIABLE, home, made
from normviz.runs import Run
from normviz.runs.store import Store, StoreError
from normviz.runs.store.rows import LOST, alive
from normviz.runs.store.schema import VERSION
from normviz.training.events import Diverged, Started, Step

CONFIG = RunConfig(depth=3)
STARTED = Started(CONFIG, "cpu", 1, 1234, 3.3, 1.1, None)


def found(store: Store, run: int) -> Run:
    record = store.run(run)
    assert record is not None
    return record


def begin(store: Store, config: RunConfig = CONFIG, pid: int | None = None) -> int:
    """A run that a worker (this process, if no other) has taken."""
    run = store.enqueue(config)
    store.started(run, STARTED, os.getpid() if pid is None else pid, paused=False)
    return run


def layers(seed: int) -> np.ndarray:
    """[probes, L+1] with every kind of number."""
    values = np.random.default_rng(seed).standard_normal(
        (len(recorded_by("one")), CONFIG.depth + 1)
    )
    values[0, :3] = math.nan, math.inf, -math.inf
    values[1, :3] = 5e-324, -0.0, 1e308
    return values


def dead_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


# Round trips

STEPS = [
    Step(0, 3.5, 1e-3, 0.7, layers(0)),
    Step(1, math.nan, 2e-3, math.nan, None),
    Step(2, math.inf, 3e-3, math.inf, layers(2)),
    Step(3, 0.1 + 0.2, 5e-324, 1e308, None),
]


def test_steps_come_back_bit_for_bit(store: Store) -> None:
    run = begin(store)
    store.append(run, STEPS)
    back = Store(store.folder).steps(found(store, run))
    assert back.step.tolist() == [0, 1, 2, 3]
    for name in ("loss", "lr", "grad_norm"):
        ours = np.array([getattr(step, name) for step in STEPS])
        assert np.array_equal(getattr(back, name), ours, equal_nan=True)
    assert back.layer_steps.tolist() == [0, 2]
    assert back.layers.tobytes() == np.stack([layers(0), layers(2)]).tobytes()


def test_the_tail_of_a_run_is_what_came_after(store: Store) -> None:
    run = begin(store)
    store.append(run, STEPS)
    for after in (-1, 0, 1, 3):
        tail = store.steps(found(store, run), after)
        assert tail.step.tolist() == [s.step for s in STEPS if s.step > after]
        assert len(tail.layers) == len(tail.layer_steps)


def test_a_run_without_steps_has_empty_arrays(store: Store) -> None:
    steps = store.steps(found(store, begin(store)))
    assert steps.step.shape == steps.loss.shape == (0,)
    assert steps.layers.shape == (0, len(recorded_by("one")), CONFIG.depth + 1)


def test_a_run_remembers_what_started_it(store: Store) -> None:
    run = found(store, begin(store))
    assert (run.config, run.key, run.status) == (CONFIG, CONFIG.key, "running")
    assert run.started == STARTED
    assert run.probes == recorded_by("one")
    assert run.is_open
    assert not run.is_done


def test_an_edited_run_has_the_name_of_what_it_is_now(store: Store) -> None:
    run, edited = begin(store), CONFIG.replace(lr_edits=((4, 0.1),))
    store.append(run, [], reach=4)
    assert store.set_rate([run], 0.1) == 4
    assert (found(store, run).config, found(store, run).key) == (edited, edited.key)
    assert store.latest(CONFIG.key) is None


def test_an_edited_run_is_found_by_what_it_began_with(store: Store) -> None:
    """Neither by other settings, nor by a rate that it took otherwise, nor once it was stopped."""
    first, newest, stopped, whole = (begin(store) for _ in range(4))
    for run, reach in ((first, 4), (newest, 6), (stopped, 8)):
        store.append(run, [], reach)
        store.set_rate([run], 0.1)
    store.end(stopped, "stopped")
    begun = store.turned(CONFIG)
    assert begun is not None and begun.id == newest != whole
    earlier = store.turned(CONFIG.replace(lr_edits=((4, 0.1),)))
    assert earlier is not None and earlier.id == first
    for other in ({"lr_edits": ((4, 0.2),)}, {"lr_edits": ((8, 0.1),)}, {"init_seed": 7}):
        assert store.turned(CONFIG.replace(**other)) is None


def test_runs_take_another_rate_at_the_first_step_that_none_has_taken(store: Store) -> None:
    """Not those that wait, have ended, or end before it."""
    ahead, behind, ended = begin(store), begin(store), begin(store)
    short, waits = begin(store, CONFIG.replace(steps=7)), store.enqueue(CONFIG)
    for run, reach in ((ahead, 9), (behind, 3), (ended, 50), (short, 7)):
        store.append(run, [], reach)
    store.end(ended, "finished")
    assert store.set_rate([ahead, behind, ended, short, waits, 99], 0.1) == 9
    edits = [found(store, run).config.lr_edits for run in (ahead, behind, ended, short, waits)]
    assert edits == [((9, 0.1),), ((9, 0.1),), (), (), ((9, 0.1),)]
    assert store.set_rate([store.enqueue(CONFIG)], 0.2) == 0


def test_a_run_at_its_last_steps_keeps_no_other_from_another_rate(store: Store) -> None:
    ends, goes = begin(store), begin(store, CONFIG.replace(steps=100))
    store.append(ends, [], reach=CONFIG.steps)
    store.append(goes, [], reach=60)
    assert store.set_rate([ends, goes], 0.1) == 60
    assert found(store, ends).config == CONFIG
    assert store.set_rate([ends], 0.1) is None


def test_a_run_that_ended_before_a_rate_was_taken_does_not_name_it(store: Store) -> None:
    """The settings of a link stay what they are: its run has taken what it could."""
    run, planned = begin(store), CONFIG.replace(lr_edits=((50, 0.2),))
    other = begin(store, planned)
    for each in (run, other):
        store.append(each, [Step(0, 3.0, 1e-3, 1.0, None)], reach=9)
    assert store.set_rate([run], 0.1) == 9
    for each in (run, other):
        store.end(each, "stopped")
    assert (found(store, run).config, found(store, run).key) == (CONFIG, CONFIG.key)
    assert found(store, other).config == planned


def test_a_rate_that_is_taken_back_before_its_step_leaves_no_edit(store: Store) -> None:
    run = begin(store)
    store.append(run, [], reach=9)
    assert store.set_rate([run], CONFIG.lr) is None
    assert not store.controls(run, 0)
    assert store.set_rate([run], 0.1) == 9
    assert store.set_rate([run], 0.1) is None
    store.append(run, [], reach=8)  # paused: it asks sooner
    assert store.set_rate([run], 0.2) == 8
    assert found(store, run).config.lr_edits == ((8, 0.2),)
    assert store.set_rate([run], CONFIG.lr) == 8
    assert found(store, run).config == CONFIG
    assert [value for *_, value in store.controls(run, 0)] == [0.1, 0.2, CONFIG.lr]
    with pytest.raises(ConfigError):
        store.set_rate([run], -1.0)


# Statuses


def test_a_run_whose_process_is_gone_reads_as_failed(store: Store) -> None:
    run = begin(store, pid=dead_pid())
    assert (found(store, run).status, found(store, run).message) == ("failed", LOST)
    store.close_open()  # a new supervisor writes it down
    row = store.db.connection.execute("SELECT status FROM runs").fetchone()
    assert row["status"] == "failed"


def test_a_damaged_row_names_no_process(store: Store) -> None:
    best, run = begin(store), begin(store)
    store.end(best, "stopped")
    for pid in (0, -1, 1.5, 2**40, 2**62, "no number", "", "\0", b"\xff", 1e300, None):
        store.db.connection.execute("UPDATE runs SET pid = ? WHERE id = ?", (pid, run))
        assert found(store, run).status == "failed"
        assert (latest := store.latest(CONFIG.key)) is not None and latest.id == best


def test_a_process_that_was_not_collected_has_ended(store: Store) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        wait_for(lambda: not alive(process.pid), "its end")
        assert process.returncode is None and not alive(process.pid)
    assert alive(os.getpid()) and alive(1)


def test_a_new_supervisor_knows_that_no_run_has_a_process(store: Store) -> None:
    """Also where another process has the number of one that trained: numbers come again."""
    running, queued = begin(store), store.enqueue(CONFIG)
    assert found(store, running).status == "running"  # our own number: it lives
    store.close_open()
    assert [found(store, run).status for run in (running, queued)] == ["failed", "queued"]


def test_a_closed_run_stays_as_it_is(store: Store) -> None:
    for status in ("finished", "diverged", "stopped", "failed"):
        run = begin(store)
        bad = Diverged(3, 2, "activation") if status == "diverged" else None
        store.end(run, status, bad, message="first")
        store.end(run, "failed", message="second")
        record = found(store, run)
        assert (record.status, record.message) == (status, "first")
        assert record.first_bad == bad


# Controls


def test_controls_are_read_once_and_in_order(store: Store) -> None:
    run, other = begin(store), begin(store)
    store.control(run, "pause")
    store.control(other, "stop")
    store.set_rate([run], 0.5)
    asked = store.controls(run, after=0)
    assert [(action, value) for _, action, value in asked] == [("pause", None), ("lr", 0.5)]
    assert store.controls(run, after=asked[-1][0]) == []
    assert store.stops() == [other]


def test_a_stop_of_a_closed_run_is_over(store: Store) -> None:
    run = begin(store)
    store.control(run, "stop")
    store.end(run, "stopped")
    assert store.stops() == []


# Files and neighbours


@pytest.mark.parametrize("schema", [VERSION + 1, 99, -1])
def test_a_store_of_another_schema_gets_a_sentence(tmp_path: Path, schema: int) -> None:
    with closing(sqlite3.connect(tmp_path / "normviz.sqlite")) as db:
        db.execute(f"PRAGMA user_version = {schema}")
    with pytest.raises(
        StoreError, match=rf"has another schema \({schema}, .* set NORMVIZ_HOME to an"
    ):
        Store(tmp_path)


def test_a_folder_that_is_not_there_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"can't be opened .* set NORMVIZ_HOME to a folder that"):
        Store(tmp_path / "nowhere")


def test_a_file_that_is_no_database_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "normviz.sqlite").write_text("certainly not a database " * 100)
    with pytest.raises(StoreError, match=r"can't be opened .* or move the file away"):
        Store(tmp_path)


def test_the_environment_chooses_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NORMVIZ_HOME", str(tmp_path / "a" / "b"))
    assert home() == tmp_path / "a" / "b"
    assert Store().folder == tmp_path / "a" / "b"


def test_two_stores_on_one_file_see_each_other(store: Store) -> None:
    other = Store(store.folder)
    before = other.version()
    run = begin(store)
    assert other.version() != before
    assert found(other, run).status == "running"


def test_many_writers_lose_nothing(store: Store) -> None:
    """Each thread has a store of its own, as every process has."""

    def write(runs: Sequence[int]) -> None:
        mine = Store(store.folder)
        for step in range(30):
            for run in runs:
                mine.append(run, [Step(step, 1.0, 0.1, 1.0, layers(step))])

    runs = [begin(store) for _ in range(4)]
    threads = [threading.Thread(target=write, args=([run],)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        assert store.steps(found(store, run)).step.tolist() == list(range(30))


def test_a_failed_write_leaves_nothing_behind(store: Store) -> None:
    run = begin(store)
    with pytest.raises(sqlite3.IntegrityError):
        store.append(run, [STEPS[0], STEPS[1], STEPS[1]])
    assert len(store.steps(found(store, run)).step) == 0
    store.append(run, STEPS)  # and the connection still works
    assert len(store.steps(found(store, run)).step) == len(STEPS)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_the_owner_alone_can_read_a_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that somebody named and that was there before keeps its permissions."""

    def mode(folder: Path) -> int:
        return stat.S_IMODE(os.stat(folder).st_mode)

    new, named, usual, given = (tmp_path / name for name in ("new", "named", "usual", "given"))
    for folder in (named, usual):
        folder.mkdir()
        folder.chmod(0o755)
    for folder in (new, named):
        monkeypatch.setenv(VARIABLE, str(folder))
        assert Store().folder == folder
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("normviz.home.user_data_path", lambda *_, **__: usual)
    assert Store().folder == usual and data_folder(given) == given
    assert [mode(it) for it in (new, named, usual, given)] == [0o700, 0o755, 0o700, 0o700]
    (tmp_path / "plain").mkdir()
    assert mode(made(tmp_path / "site", "")) == mode(tmp_path / "plain"), "it is for others"
