"""A supervisor that hangs, a second server that takes over, and a clock that jumps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from backend_kit import LONG, SHORT, Lane, losses, members, wait_for
from faults_kit import clock, pause
from filelock import FileLock

from normviz.execution import client, identity
from normviz.execution.budget import default_slots
from normviz.execution.client import SupervisorClient
from normviz.execution.heartbeat import HANGS_SECONDS, SILENT_SECONDS, HeartbeatReader
from normviz.policy import Policy
from normviz.runs.listing import ago, seconds
from normviz.runs.store import Store
from normviz.runs.store.rows import LOST

pytestmark = pytest.mark.slow

SERVER = """
import sys, time
from normviz.execution.client import SupervisorClient
from normviz.runs.store import Store
from normviz.runs.store.rows import LOST

backend = SupervisorClient(Store())
while True:
    backend.ensure()
    time.sleep(0.1)
"""
YEAR = 365 * 86_400.0


Shift = Callable[[float], None]


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SupervisorClient, Shift]]:
    """A server for two tests, and what sets how far the clock of its processes is off."""
    folder = tmp_path_factory.mktemp("clocked")
    environment, shift = clock(folder)
    (folder / "data").mkdir()
    it = SupervisorClient(Store(folder / "data"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield it, shift
        it.close()


@pytest.fixture
def backend(clocked: tuple[SupervisorClient, Shift]) -> SupervisorClient:
    it, _ = clocked
    wait_for(lambda: it.ensure() or it.store.supervisor()[1], "a warm worker")
    return it


def test_a_supervisor_that_hangs_is_said_and_replaced(
    backend: SupervisorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 2 s instead of 10 s."""
    monkeypatch.setattr(client, "HANGS_SECONDS", 2.0)
    assert backend.process is not None
    hanging, store = backend.process.pid, backend.store
    pulse = identity.Identity(identity.machine(), hanging, identity.started(hanging) or "")
    assert backend.heartbeat.owner() == pulse  # it names it
    assert identity.started(os.getpid()) is None  # no supervisor
    lane = Lane(store, LONG)
    lane.reach_step(3)
    wait_for(lambda: backend.silent() < SILENT_SECONDS, "its pulse")
    pause(store, hanging)
    waiting = Lane(store, SHORT)
    wait_for(lambda: backend.silent() > 1.0, "that it is noticed")
    n = lane.n
    lane.reach_step(n + 1)  # what trains goes on meanwhile
    assert (lane.status, waiting.status) == ("running", "queued")
    before = lane.steps.loss.tobytes()
    wait_for(lambda: backend.ensure() or supervisor_of(store) != hanging, "another supervisor")
    waiting.reach("finished")
    assert waiting.steps.loss.tolist() == losses(SHORT)
    assert lane.status == "failed"  # its process had nobody to answer to
    assert lane.steps.loss.tobytes().startswith(before)
    wait_for(lambda: not members(hanging), "the end of all its processes")
    assert backend.silent() < HANGS_SECONDS


def test_a_supervisor_that_starts_slowly_is_not_replaced_and_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the heartbeat of the one before, which is long silent; closed, nothing of it stays."""
    monkeypatch.setattr(client, "HANGS_SECONDS", 0.1)
    monkeypatch.setattr(client, "CLOSE_SECONDS", 120.0)
    (tmp_path / "supervisor.pulse").touch()
    it = SupervisorClient(Store(tmp_path))
    it.ensure()
    assert it.process is not None
    slow = it.process.pid
    os.kill(slow, signal.SIGSTOP)
    time.sleep(1.5)
    it.ensure()
    assert (it.process.pid, it.silent()) == (slow, 0)
    os.kill(slow, signal.SIGCONT)
    it.close()
    assert it.process.returncode == 0
    wait_for(lambda: not members(slow), "the end of every process")


@contextmanager
def server(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that looks after the folder's supervisor until it is killed."""
    environment = {**os.environ, "NORMVIZ_HOME": str(folder)}
    process = subprocess.Popen([sys.executable, "-c", SERVER], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def supervisor_of(store: Store) -> int:
    row = store.db.connection.execute("SELECT pid FROM supervisor").fetchone()
    return 0 if row is None else row["pid"]


def owner_of(store: Store, *servers: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    """The server that started the folder's supervisor."""
    pid = supervisor_of(store)
    (owner,) = (each for each in servers if pid in _children(each.pid))
    return owner


def test_a_server_takes_over_from_one_that_is_killed_and_nothing_outlives_the_last(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    with ExitStack() as stack:
        servers = [stack.enter_context(server(tmp_path)) for _ in range(2)]
        lane, *others = (Lane(store, LONG) for _ in range(default_slots(Policy())))
        for each in (lane, *others):
            each.reach_step(3)
        owner = owner_of(store, *servers)
        (second,) = (s for s in servers if s is not owner)
        before = lane.steps.loss.tobytes()
        # It waits: every slot is taken. Else it might begin, and be lost with its process.
        waiting = Lane(store, SHORT)
        _killed(owner)
        wait_for(lambda: lane.status == "failed", "the truth about the run")
        waiting.reach("finished")
        assert lane.steps.loss.tobytes().startswith(before)
        assert owner_of(store, second) is second

        new, lane = supervisor_of(store), Lane(store, LONG)
        lane.reach_step(3)
        assert lane.pid in members(new)
        before = lane.steps.loss.tobytes()
        _killed(second)
        wait_for(lambda: not members(new), "the end of every process")
        wait_for(lambda: lane.status == "failed", "the truth about the run")
        assert lane.run.message == LOST and lane.steps.loss.tobytes().startswith(before)
        assert lane.steps.step.tolist() == list(range(lane.n))
        wait_for(lambda: store.supervisor() == (False, False), "the truth about itself")


def _killed(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait()


PROCESS = "import time; time.sleep(600)  # {command}"


@contextmanager
def hanging(
    folder: Path, command: str = identity.COMMAND, **changes: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody holds the lock; its reader names this process, but for the changes of its identity."""
    process = subprocess.Popen([sys.executable, "-c", PROCESS.format(command=command)])
    wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes(), "its start")
    lock = FileLock(folder / "supervisor.lock")
    try:
        lock.acquire()
        named = {
            "machine": identity.machine(),
            "pid": process.pid,
            "started": Path(f"/proc/{process.pid}/stat").read_text().split()[21],
        }
        (folder / "supervisor.pulse").write_text(json.dumps(named | changes))
        yield process
    finally:
        lock.release(force=True)
        process.kill()
        process.wait()


@pytest.fixture
def watcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SupervisorClient]:
    """A server without a supervisor of its own that takes a fifth of a second for a long silence."""
    monkeypatch.setattr(client, "HANGS_SECONDS", 0.2)
    monkeypatch.setattr(subprocess, "Popen", _Counted)
    it = SupervisorClient(Store(tmp_path))
    yield it
    it.close()


class _Counted(subprocess.Popen):
    """A process; supervisors are not started, since these tests are over before one has begun."""

    def __init__(self, command: list[str], **more: Any) -> None:
        if command[1:] == ["-m", "normviz.execution.supervise"]:
            command = ["true"]
        super().__init__(command, **more)


def silence(backend: SupervisorClient) -> None:
    """The backend looks twice, with a silence between that it takes for long."""
    backend.ensure()
    time.sleep(0.3)
    backend.tried = 0.0
    backend.ensure()


def test_a_silent_process_is_killed_by_its_identity(watcher: SupervisorClient) -> None:
    with hanging(watcher.store.folder) as process:
        silence(watcher)
        assert process.wait(10) == -signal.SIGKILL
        assert watcher.process is not None and watcher.stuck is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"machine": "another"}, identity.ELSEWHERE),  # another host, or a container
        ({"started": "1"}, identity.UNKNOWN),  # its id was used again
        ({"command": "vim notes"}, identity.UNKNOWN),
        ({"pid": -1}, identity.UNKNOWN),
        ({"release": "another"}, identity.UNKNOWN),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_no_other_process_is_ever_killed(
    watcher: SupervisorClient, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], why: str
) -> None:
    """It is said once why the supervisor can't be replaced."""
    with hanging(watcher.store.folder, **changes) as process:
        silence(watcher)
        silence(watcher)
        time.sleep(0.2)
        assert process.poll() is None and watcher.process is None
        said = capfd.readouterr().err
        assert said.count("can't be replaced from here, since ") == 1 and why in said
        assert watcher.stuck is not None and why in watcher.stuck
        (watcher.store.folder / "supervisor.pulse").touch()
        watcher.ensure()
        assert watcher.stuck is None  # it answers again


def test_a_new_supervisor_is_not_taken_for_the_silent_one(
    watcher: SupervisorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server replaced it between this one's look at the silence and at whose it is."""
    file = watcher.store.folder / "supervisor.pulse"
    with hanging(watcher.store.folder) as process:
        named = file.read_text()
        file.write_text("of the one before")
        owner = watcher.heartbeat.owner

        def late() -> identity.Identity | None:
            file.write_text(named)
            return owner()

        monkeypatch.setattr(watcher.heartbeat, "owner", late)
        silence(watcher)
        time.sleep(0.2)
        assert process.poll() is None and watcher.process is None and watcher.stuck is None


def test_where_there_is_no_proc_the_clock_says_when_a_process_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity.psutil, "LINUX", False)
    with hanging(tmp_path) as process:
        start = identity.started(process.pid)
        assert start is not None and abs(float(start) - time.time()) < 600
        assert identity.started(process.pid) == start
    assert identity.started(process.pid) is None


def test_a_machine_that_was_asleep_does_not_take_that_for_a_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a paused container, whose clock goes on: what a server did not see counts little."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    (tmp_path / "supervisor.pulse").touch()
    reader = HeartbeatReader(tmp_path)
    assert reader.silent() == 0.0
    now += 3600.0
    assert SILENT_SECONDS < reader.silent() < HANGS_SECONDS
    now += 2.0
    assert reader.silent() < HANGS_SECONDS
    now += 4.0
    assert reader.silent() >= HANGS_SECONDS


def test_the_progress_bar_says_that_it_hangs(folder: Path) -> None:
    from normviz.app.session.progress import status

    from normviz.runs.frames import Frames

    store = Store(folder)
    run = store.run(store.enqueue(SHORT))
    assert run is not None
    frames = Frames(store)
    assert "has not answered for 4 s" in status(frames, [run], 4.0)["words"]
    assert "answered" not in status(frames, [run], 0.2)["words"]
    store.end(run.id, "stopped")
    ended = store.run(run.id)
    assert ended and not status(frames, [ended], 9.0)["words"]


def test_a_pulse_is_a_change_and_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat dated a year from now, or ago, is a beat; a file that stays as it is, is none."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    reader, file = HeartbeatReader(tmp_path), tmp_path / "supervisor.pulse"
    assert reader.silent() == 0.0  # there never was one
    for at in (time.time() + YEAR, time.time() - YEAR, 0.0):
        file.touch()
        os.utime(file, (at, at))
        now += 0.15
        assert reader.silent() == 0.0
    now += 0.15
    assert reader.silent() == pytest.approx(0.15)


def _children(pid: int) -> set[int]:
    return {child.pid for child in psutil.Process(pid).children()}


def test_a_clock_that_jumps_changes_no_number_and_keeps_no_run_from_its_stop(
    backend: SupervisorClient, clocked: tuple[SupervisorClient, Shift]
) -> None:
    """A year forwards, and then two back."""
    store, (_, shift) = backend.store, clocked
    for jump in (YEAR, -YEAR):
        lane = Lane(store, SHORT.replace(steps=200), paused=True)
        store.control(lane.id, "step")
        lane.reach_step(1)
        shift(jump)
        store.control(lane.id, "resume")
        lane.reach("finished")
        assert lane.steps.loss.tolist()[:20] == losses(SHORT.replace(steps=200), 20)
        assert lane.n == 200
        took = seconds(lane.run)
        assert took is not None and took >= 0
        slow = Lane(store, LONG)
        slow.reach_step(1)
        pause(store, slow.pid)  # in the middle of a step
        slow.stop()
        created = abs(lane.run.created - time.time())
        assert created < YEAR / 2 and ago(time.time() + YEAR, time.time()) == "just now"
        wait_for(lambda: backend.silent() < SILENT_SECONDS, "its pulse")
        after = Lane(store, SHORT)
        after.reach("finished")
