"""Measurements at initialisation hand their process back: nothing is forked for each of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from backend_kit import LONG, SHORT, Lane, losses, members, wait_for

from normviz import RunConfig
from normviz.config import is_quick
from normviz.execution.client import SupervisorClient
from normviz.runs.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisorClient]:
    """A supervisor of its own for the tests of this file."""
    backend = SupervisorClient(Store(tmp_path_factory.mktemp("measures")))
    backend.ensure()
    yield backend
    backend.close()


@pytest.fixture
def store(backend: SupervisorClient) -> Iterator[Store]:
    """The supervisor's store, warm; a run that a test leaves behind is stopped."""
    store = backend.store
    wait_for(lambda: store.supervisor()[1], "a warm worker")
    yield store
    for run in range(1, 100):
        if (record := store.run(run)) and record.is_open:
            store.control(run, "stop")
            wait_for(lambda run=run: not (r := store.run(run)) or not r.is_open, "its end")


def test_what_is_quick() -> None:
    assert is_quick(RunConfig(depth=96, steps=0))
    assert not is_quick(RunConfig(depth=96, steps=1))
    assert not is_quick(RunConfig(depth=1000, steps=0))
    assert not is_quick(RunConfig(depth=96, scheme="attnres", steps=0))  # gigabytes


def test_measurements_in_a_row_fork_nothing(backend: SupervisorClient, store: Store) -> None:
    assert backend.process is not None
    measure(store, range(2))  # after what other tests did, the spares are complete again
    before = members(backend.process.pid)
    assert {lane.pid for lane in measure(store, range(2, 8))} <= before
    assert members(backend.process.pid) == before


def test_a_used_process_gives_the_same_numbers(store: Store) -> None:
    first = RunConfig(depth=9, scheme="admin", steps=0)
    second = SHORT.replace(steps=0, dropout=0.1)
    for config in (first, second, first):
        lane = Lane(store, config)
        lane.reach("finished")
        assert lane.steps.loss.tolist() == losses(config)
    lane = Lane(store, SHORT)
    lane.reach("finished")
    assert lane.steps.loss.tolist() == losses(SHORT)


def test_a_measurement_of_a_large_model_ends_its_process(store: Store) -> None:
    lane = Lane(store, SHORT.replace(depth=3, width=1024, steps=0))
    lane.reach("finished")
    pid = lane.pid
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the process")


def test_used_processes_that_die_are_replaced(backend: SupervisorClient, store: Store) -> None:
    assert backend.process is not None
    session, used = backend.process.pid, {lane.pid for lane in measure(store, range(4))}
    for pid in used:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not members(session) & used, "their end")
    lanes = [Lane(store, LONG), Lane(store, SHORT.replace(steps=0))]
    lanes[0].reach_step(1)
    lanes[1].reach("finished")


def test_a_run_handed_to_a_process_that_dies_goes_to_another(
    backend: SupervisorClient, store: Store
) -> None:
    """Killed before it has read which run is its own, a process has not touched it."""
    assert backend.process is not None
    used = {lane.pid for lane in measure(store, range(10, 14))} & members(backend.process.pid)
    for pid in used:
        os.kill(pid, signal.SIGSTOP)  # what is sent to it arrives, and is not read
    version = store.version()
    lane = Lane(store, LONG)
    wait_for(lambda: store.version() != version, "the hand-out")  # a write of the supervisor's
    for pid in used:
        os.kill(pid, signal.SIGKILL)
    lane.reach_step(1)


def measure(store: Store, seeds: range) -> list[Lane]:
    """One measurement after the other; the last two processes have time to be warm again."""
    lanes = []
    for seed in seeds:
        lanes.append(Lane(store, SHORT.replace(steps=0, init_seed=seed)))
        lanes[-1].reach("finished")
    return lanes
