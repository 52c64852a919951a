"""Deaths of supervisor and server, for real: nothing committed is lost, nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from backend_kit import LONG, SHORT, Lane, losses, members, wait_for

from normviz.execution import client
from normviz.execution.client import SupervisorClient
from normviz.runs.store import Store
from normviz.runs.store.run import LOST

pytestmark = pytest.mark.slow

SERVER = """
import sys
from normviz.execution.client import SupervisorClient
from normviz.runs.store import Store

backend = SupervisorClient(Store())
backend.ensure()
print(backend.process.pid, flush=True)
sys.stdin.read()
"""
"""A server as the page is one: it starts the supervisor and goes on doing other things."""


def start_server(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "NORMVIZ_HOME": str(folder)},
    )


def supervisor_of(server: subprocess.Popen[bytes]) -> int:
    """The process, and session, of the supervisor that a server started."""
    assert server.stdout is not None
    return int(server.stdout.readline())


def train_two(store: Store) -> list[Lane]:
    """Two lanes that train for long, with some steps behind them."""
    lanes = [Lane(store, LONG), Lane(store, LONG.replace(scheme="post"))]
    for lane in lanes:
        lane.reach_step(3)
    return lanes


def assert_lost_but_kept(lanes: list[Lane], before: list[bytes]) -> None:
    """The runs read as failed, with every step that was committed before."""
    for lane, losses_before in zip(lanes, before, strict=True):
        assert (lane.status, lane.run.message) == ("failed", LOST)
        assert lane.steps.loss.tobytes().startswith(losses_before)
        assert lane.steps.step.tolist() == list(range(lane.n))


def test_a_killed_supervisor_is_replaced(tmp_path: Path) -> None:
    backend = SupervisorClient(Store(tmp_path))
    backend.ensure()
    assert backend.process is not None
    first, store = backend.process.pid, backend.store
    lanes = train_two(store)
    waiting = Lane(store, SHORT)
    before = [lane.steps.loss.tobytes() for lane in lanes]

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: members(first) <= {first}, "the end of the workers")
    wait_for(lambda: all(lane.status == "failed" for lane in lanes), "the truth about the runs")
    assert_lost_but_kept(lanes, before)
    assert waiting.status == "queued"

    wait_for(lambda: backend.ensure() or store.supervisor()[1], "another supervisor")
    assert backend.process.pid != first
    waiting.reach("finished")  # the new one goes on with the queue
    assert waiting.steps.loss.tolist() == losses(SHORT)
    assert_lost_but_kept(lanes, before)
    rows = store.db.connection.execute("SELECT status FROM runs ORDER BY id").fetchall()
    assert [row["status"] for row in rows] == ["failed", "failed", "finished"]
    session = backend.process.pid
    backend.close()
    wait_for(lambda: not members(session), "the end of every process")


def test_nothing_outlives_the_server(tmp_path: Path) -> None:
    server = start_server(tmp_path)
    with server:
        session = supervisor_of(server)
        lanes = train_two(Store(tmp_path))
        assert lanes[0].pid in members(session)
        before = [lane.steps.loss.tobytes() for lane in lanes]
        server.kill()
    wait_for(lambda: not members(session), "the end of every process")
    wait_for(lambda: all(lane.status == "failed" for lane in lanes), "the truth about the runs")
    assert_lost_but_kept(lanes, before)
    wait_for(lambda: Store(tmp_path).supervisor() == (False, False), "the truth about itself")


def test_a_dead_supervisor_of_an_idle_server_does_not_block_others(tmp_path: Path) -> None:
    """Until the server that started it looks, it is a zombie: a process number, but no process."""
    server = start_server(tmp_path)
    with server:
        session, store = supervisor_of(server), Store(tmp_path)
        lanes = train_two(store)
        try:
            os.kill(session, signal.SIGKILL)
            wait_for(lambda: not members(session), "the end of every process")
            wait_for(lambda: all(lane.status == "failed" for lane in lanes), "the truth about runs")
            assert store.supervisor() == (False, False)
        finally:
            server.kill()


def test_a_supervisor_can_be_closed_while_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CLOSE_SECONDS", 120.0)
    backend = SupervisorClient(Store(tmp_path))
    backend.ensure()
    assert backend.process is not None
    session = backend.process.pid
    backend.close()
    assert backend.process.returncode == 0
    wait_for(lambda: not members(session), "the end of every process")


def test_neither_what_another_release_queued_nor_a_number_that_came_again_keeps_others_waiting(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    foreign = Lane(store, SHORT)
    db = store.db.connection
    query = "UPDATE runs SET config = json_set(config, '$.of_the_future', 1) WHERE id = ?"
    db.execute(query, (foreign.id,))
    assert store.run(foreign.id) is None
    store.announce(
        os.getpid(), ready=True
    )  # as after the restart of a container: a number came again
    backend = SupervisorClient(store)
    backend.ensure()
    try:
        Lane(store, SHORT).reach("finished")
        row = db.execute("SELECT * FROM runs WHERE id = ?", (foreign.id,)).fetchone()
        assert row["status"] == "failed" and "another release of NormViz" in row["message"]
        assert store.queued() == []
    finally:
        backend.close()
    assert store.supervisor() == (False, False)
