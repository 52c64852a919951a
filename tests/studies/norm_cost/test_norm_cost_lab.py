"""The lab beside a real back end: it never overlaps a training run, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_kit import LONG, SHORT, Lane, members, wait_for

from normviz.execution.client import SupervisorClient
from normviz.runs.frames import Frames
from normviz.runs.store import Store
from normviz.runs.store.machine_lock import MachineLock
from normviz.studies.norm_cost import lab as lab_
from normviz.studies.norm_cost.client import Lab
from normviz.studies.norm_cost.lab import BusyError, run
from normviz.studies.norm_cost.result import CostSetting

pytestmark = pytest.mark.slow

TINY = CostSetting(width=32, tokens=64, seconds=1)
SERVER = """
import sys, time
from pathlib import Path
from normviz.studies.norm_cost.client import Lab
from normviz.studies.norm_cost.result import CostSetting

lab = Lab(Path(sys.argv[1]))
lab.start(CostSetting(width=32, tokens=64, seconds=300))
while "Round" not in lab.state.doing:
    time.sleep(0.01)
print(*lab.pids, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisorClient]:
    backend = SupervisorClient(Store(tmp_path_factory.mktemp("lab")))
    backend.ensure()
    wait_for(lambda: backend.store.supervisor()[1], "a warm worker")
    yield backend
    backend.close()


@pytest.fixture
def lab(backend: SupervisorClient) -> Iterator[Lab]:
    lab = Lab(backend.store.folder)
    yield lab
    lab.stop()
    wait_for(lambda: not backend.store.is_timing(), "the end of the measurement")


def measuring(lab: Lab) -> None:
    wait_for(lambda: lab.state.doing.startswith("Round"), lambda: f"a round, not {lab.state}")


def test_it_waits_for_a_run_that_trains_and_runs_wait_until_it_is_killed(
    backend: SupervisorClient, lab: Lab
) -> None:
    """A pause lets it in; what is queued meanwhile says why it waits."""
    store, rounds = backend.store, CostSetting(width=32, tokens=64, seconds=300)
    lane = Lane(store, LONG)
    lane.reach_step(2)
    for stops in (True, False):
        lab.start(rounds)
        wait_for(lambda: lab.state.doing.startswith("Waiting for runs"), lambda: f"{lab.state}")
        n = lane.n
        lane.reach_step(n + 3)  # it goes on
        if stops:
            lab.stop()
            assert lab.state.problem == "it was stopped"
            wait_for(lambda: not store.is_timing(), "the end of its process")
    store.control(lane.id, "pause")
    measuring(lab)
    held = lane.n
    store.control(lane.id, "resume")
    queued = Lane(store, SHORT)
    before = lab.state.doing
    wait_for(lambda: lab.state.doing != before, "another round")
    assert (lane.status, lane.n, queued.status) == ("paused", held, "queued")
    assert Frames(store).verdict(queued.run).sentence == (
        "waiting for the norm cost lab, place 1 in the queue"
    )
    os.kill(*lab.pids, signal.SIGKILL)
    queued.reach("finished")
    lane.reach_step(held + 3)
    assert lane.status == "running"
    lane.stop()
    wait_for(lambda: not lab.state.doing, "the news")
    assert lab.state.problem == "its process was killed by signal 9"


def test_a_process_that_does_not_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    lab = Lab(tmp_path)
    lab.start(TINY)
    wait_for(lambda: not lab.state.doing, "the news")
    assert lab.state.problem.startswith("its process gave no result: FileNotFoundError: ")


def test_it_gives_up_where_a_run_trains_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_, "PATIENCE_SECONDS", 0.1)
    training = MachineLock(tmp_path)
    assert training.take()
    with pytest.raises(BusyError, match=r"has been training here for the last 0.1 s.*pause it"):
        list(run(TINY, tmp_path))
    assert MachineLock(tmp_path).take(), "others may train on"


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    first = MachineLock(tmp_path, alone=True)
    assert first.take()
    with pytest.raises(BusyError, match="somebody else measures"):
        list(run(TINY, tmp_path))


def test_it_does_not_outlive_its_server(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        session = int(server.stdout.readline())
        assert members(session) == {session}
        server.kill()
    wait_for(lambda: not members(session), "the end of the measuring process")
    wait_for(MachineLock(tmp_path).take, "the machine to be free")  # the last thread lets go of it
