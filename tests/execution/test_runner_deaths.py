"""Deaths of supervisor and forkserver, for real: nothing committed is lost, nothing stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest
from backend_kit import LONG, SHORT, Lane, losses, members, wait_for

from normviz.execution.client import SupervisorClient
from normviz.runs.store import Store, cells
from normviz.runs.store.rows import LOST

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisorClient]:
    """A server without a page, for all tests of this file."""
    it = SupervisorClient(Store(tmp_path_factory.mktemp("deaths")))
    it.ensure()
    yield it
    assert it.process is not None
    session = it.process.pid
    it.close()
    wait_for(lambda: not members(session), "the end of every process")
    assert it.store.supervisor() == (False, False)


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


def test_a_killed_supervisor_is_replaced(backend: SupervisorClient) -> None:
    """Until its server looks it is a zombie: a process number, but no process. Neither what another
    release queued nor a number that came again keeps others waiting."""
    assert backend.process is not None
    first, store = backend.process.pid, backend.store
    lanes = train_two(store)
    waiting, foreign, after = (Lane(store, SHORT) for _ in range(3))
    before = [lane.steps.loss.tobytes() for lane in lanes]

    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not members(first), "the end of every process")
    wait_for(lambda: all(lane.status == "failed" for lane in lanes), "the truth about the runs")
    assert store.supervisor() == (False, False)
    assert psutil.Process(first).status() == psutil.STATUS_ZOMBIE
    assert_lost_but_kept(lanes, before)
    assert waiting.status == "queued"

    db = store.db.connection
    query = "UPDATE runs SET config = json_set(config, '$.of_the_future', 1) WHERE id = ?"
    db.execute(query, (foreign.id,))
    assert store.run(foreign.id) is None
    # As after the restart of a container: a number came again.
    store.announce(os.getpid(), ready=True)
    wait_for(lambda: backend.ensure() or waiting.status == "finished", "another supervisor")
    assert backend.process.pid != first
    after.reach("finished")  # the new one goes on with the queue
    assert waiting.steps.loss.tolist() == losses(SHORT)
    assert_lost_but_kept(lanes, before)
    row = db.execute("SELECT * FROM runs WHERE id = ?", (foreign.id,)).fetchone()
    assert row["status"] == "failed" and "another release of NormViz" in row["message"]
    assert store.queued() == []


def test_a_killed_forkserver_costs_nothing(backend: SupervisorClient) -> None:
    """The run that trains goes on, is steered and ends, and the next one begins."""
    assert backend.process is not None
    first, store = backend.process.pid, backend.store
    lane = Lane(store, LONG)
    lane.reach_step(3)
    parent = psutil.Process(lane.pid).parent()
    assert parent is not None and "forkserver" in " ".join(parent.cmdline())
    os.kill(parent.pid, signal.SIGKILL)
    wait_for(lambda: parent.pid not in members(first), "its end")
    n, used = lane.n, lane.pid
    after = [Lane(store, SHORT.replace(init_seed=seed)) for seed in range(3)]
    for each in after:
        each.reach("finished")
        assert each.steps.loss.tolist() == losses(each.run.config)
    lane.reach_step(n + 1)
    lane.stop()
    assert lane.steps.loss.tolist() == losses(LONG, lane.n)
    wait_for(lambda: used not in members(first), "the end of its process")
    assert backend.process.poll() is None and backend.process.pid == first


def test_cells_outlive_the_supervisor_and_say_when_their_own_process_died(
    backend: SupervisorClient,
) -> None:
    store, process = backend.store, backend.process
    long = LONG.replace(data_seed=6)
    configs = [long, *(SHORT.replace(data_seed=n) for n in range(7, 10))]
    keys = [config.key for config in configs]
    cells.ask(store, configs, "map", "a")

    def at_work() -> int:
        opened = cells.opened(store, keys, "a")
        return opened.runs[long.key] if opened and long.key in opened.running else 0

    wait_for(at_work, "the long cell")
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: backend.ensure() or store.supervisor()[1], "another supervisor")
    run = wait_for(at_work, "the long cell again") and at_work()
    query = "SELECT pid FROM runs WHERE id = ?"
    os.kill(store.db.connection.execute(query, (run,)).fetchone()["pid"], signal.SIGKILL)
    wait_for(lambda: cells.opened(store, keys, "a") is None, "the ends")
    assert cells.failures(store, keys) == ["the training process was killed by signal 9"]
    assert [store.latest(key) is not None for key in keys] == [False, True, True, True]
