"""A supervisor that hangs, a second server that takes over, and a clock that jumps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_kit import LONG, SHORT, Lane, losses, members, wait_for
from faults_kit import clock

from normviz import RunConfig
from normviz.runner.client import Backend
from normviz.runner.pulse import HANGS_SECONDS, SILENT_SECONDS, Pulse
from normviz.shelf import ago, seconds
from normviz.store import Store

SERVER = """
import sys, time
from normviz.runner.client import Backend
from normviz.store import Store

backend = Backend(Store())
while True:
    backend.ensure()
    time.sleep(0.1)
"""
YEAR = 365 * 86_400.0


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    it = Backend(Store(tmp_path))
    it.ensure()
    wait_for(lambda: it.store.supervisor()[1], "a warm worker")
    yield it
    it.close()


def test_a_supervisor_that_hangs_is_said_and_replaced(backend: Backend) -> None:
    assert backend.process is not None
    hanging, store = backend.process.pid, backend.store
    lane = Lane(store, LONG)
    lane.reach_step(3)
    assert backend.silent() < SILENT_SECONDS
    os.kill(hanging, signal.SIGSTOP)
    waiting = Lane(store, SHORT)
    wait_for(lambda: backend.silent() > SILENT_SECONDS, "that it is noticed")
    n = lane.n
    lane.reach_step(n + 1)  # what trains goes on meanwhile
    assert (lane.status, waiting.status) == ("running", "queued")
    before = lane.steps.loss.tobytes()
    wait_for(lambda: backend.ensure() or backend.process.pid != hanging, "another supervisor")
    waiting.reach("finished")
    assert waiting.steps.loss.tolist() == losses(SHORT)
    assert lane.status == "failed"  # its process had nobody to answer to
    assert lane.steps.loss.tobytes().startswith(before)
    assert not members(hanging)
    assert backend.silent() < HANGS_SECONDS


def test_the_progress_bar_says_that_it_hangs(folder: Path) -> None:
    from progress import status

    from normviz.frames import Frames

    store = Store(folder)
    run = store.run(store.enqueue(SHORT))
    assert run is not None
    frames = Frames(store)
    assert "has not answered for 4 s" in status(frames, [run], 4.0)["words"]
    assert "answered" not in status(frames, [run], 0.2)["words"]
    store.end(run.id, "stopped")
    ended = store.run(run.id)
    assert ended and not status(frames, [ended], 9.0)["words"]


def test_a_pulse_is_a_change_and_no_time(tmp_path: Path) -> None:
    """A beat dated a year from now, or ago, is a beat; a file that stays as it is, is none."""
    pulse, file = Pulse(tmp_path), tmp_path / "supervisor.pulse"
    assert pulse.silent() < 0.2  # there never was one
    for at in (time.time() + YEAR, time.time() - YEAR, 0.0):
        file.touch()
        os.utime(file, (at, at))
        time.sleep(0.15)
        assert pulse.silent() < 0.1
    time.sleep(0.15)
    assert pulse.silent() > 0.1


def test_a_second_server_takes_over_from_one_that_is_killed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    environment = {**os.environ, "NORMVIZ_HOME": str(tmp_path)}
    servers = [subprocess.Popen([sys.executable, "-c", SERVER], env=environment) for _ in range(2)]
    try:
        lane = Lane(store, LONG)
        lane.reach_step(3)
        pid = store.db.connection.execute("SELECT pid FROM supervisor").fetchone()["pid"]
        (owner,) = (s for s in servers if pid in _children(s.pid))
        (other,) = (s for s in servers if s is not owner)
        before = lane.steps.loss.tobytes()
        waiting = [Lane(store, SHORT), Lane(store, SHORT.replace(scheme="post"))]
        owner.kill()
        owner.wait()
        wait_for(lambda: lane.status == "failed", "the truth about the run")
        for each in waiting:
            each.reach("finished")
        assert lane.steps.loss.tobytes().startswith(before)
        again = store.db.connection.execute("SELECT pid FROM supervisor").fetchone()["pid"]
        assert again in _children(other.pid)
    finally:
        for server in servers:
            server.kill()
            server.wait()


def _children(pid: int) -> set[int]:
    return {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["forwards", "backwards"])
def test_a_clock_that_jumps_changes_no_number_and_keeps_no_run_from_its_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    environment, shift = clock(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "data").mkdir()
    store = Store(tmp_path / "data")
    backend = Backend(store)
    backend.ensure()
    try:
        lane = Lane(store, SHORT.replace(steps=1000))
        lane.reach_step(3)
        shift(jump)
        lane.reach("finished")
        assert lane.steps.loss.tolist()[:20] == losses(SHORT.replace(steps=1000))[:20]
        assert lane.n == 1000
        took = seconds(lane.run)
        assert took is not None and took >= 0
        slow = Lane(store, RunConfig(depth=700, width=64, steps=5))
        slow.reach("running")
        slow.stop()
        assert slow.n == 0  # it was killed inside its first step
        created = abs(lane.run.created - time.time())
        assert created < YEAR / 2 and ago(time.time() + YEAR, time.time()) == "just now"
        wait_for(lambda: backend.silent() < SILENT_SECONDS, "its pulse")
        after = Lane(store, SHORT)
        after.reach("finished")
    finally:
        backend.close()
