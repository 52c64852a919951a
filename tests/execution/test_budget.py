"""How much is in processes at once: by cores, and on a shared server by memory, paused runs too.

`test_unwatched` has a run that waits for another one's memory, on a server of its own.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from normviz import RunConfig
from normviz.cores import Gpu
from normviz.execution import supervisor
from normviz.execution.budget import Budget, default_slots
from normviz.execution.supervisor import Job, Supervisor
from normviz.policy import SHARED, Policy
from normviz.runs.store import Store


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="a system without affinity")
def test_slots_are_the_cores_of_this_process_and_few_on_a_shared_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a container the machine has more cores than the process may use."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    assert default_slots(Policy()) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    assert default_slots(Policy()) == 16
    assert default_slots(SHARED) == SHARED.slots == 2


def test_all_runs_together_stay_in_the_budget() -> None:
    own, budget = Budget(Policy()), Budget(replace(SHARED, all_gib=0.5))
    assert own.fits(1.0, [3.9, 3.9]) and own.paused_limit(9) == Policy().paused
    assert budget.fits(0.25, [0.25]) and not budget.fits(0.25, [0.2, 0.1])
    assert budget.fits(9.0, [])  # alone any run begins, so that none waits for ever
    assert SHARED.gib <= SHARED.all_gib


def test_runs_on_gpus_stay_in_their_memory() -> None:
    budget = Budget(Policy(), [Gpu("H", 80.0, "0"), Gpu("H", 40.0, "1")])
    assert budget.gpu_for(10.0, []) == 0
    assert budget.gpu_for(10.0, [(0, 40.0)]) == 1
    assert budget.gpu_for(30.0, [(0, 40.0), (1, 10.0)]) is None
    assert budget.gpu_for(20.0, [(0, 40.0), (1, 10.0)]) == 0
    assert budget.gpu_for(99.0, [(0, 1.0)]) == 1  # alone any run begins
    assert Budget(Policy()).gpu_for(1.0, []) is None


def test_a_run_waits_for_the_memory_of_a_gpu_and_others_do_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[Job]()
    it = Supervisor(store, 9)
    it.budget.gpus = [Gpu("H", 80.0, "0"), Gpu("H", 80.0, "1")]
    monkeypatch.setattr(it, "jobs", lambda: given)
    monkeypatch.setattr(it, "give", lambda job: given.append(job) or True)
    monkeypatch.setattr(supervisor, "estimated_gib", lambda config: 40.0)
    runs = [store.enqueue(RunConfig(device=it)) for it in ("cuda", "cpu", "cuda", "cuda", "cpu")]
    it.hand_out()
    assert [(job.run, job.gpu) for job in given] == [
        (runs[0], 0),
        (runs[1], None),
        (runs[2], 1),
        (runs[4], None),
    ]
    given.pop(0)
    it.hand_out()
    assert (given[-1].run, given[-1].gpu) == (runs[0], 0)


def test_a_paused_run_gives_way_when_another_waited_long_for_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, budget = [100.0], Budget(replace(SHARED, grace=9.0, paused=4))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    budget.record_waiting(True)
    assert budget.paused_limit(3) == 4
    now[0] += 8.0
    budget.record_waiting(True)
    assert budget.paused_limit(3) == 4
    now[0] += 2.0
    budget.record_waiting(True)
    assert budget.paused_limit(0) == 4  # none is paused: those that train end by themselves
    assert budget.paused_limit(3) == 2
    assert budget.paused_limit(2) == 4  # the next one after as long again
    now[0] += 10.0
    budget.record_waiting(False)
    assert budget.paused_limit(2) == 4
