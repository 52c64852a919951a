"""A real back end for tests: waiting on state, and looking at its processes; and one without processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import psutil
import pytest

from normviz import RunConfig, train
from normviz.execution import Began, Ended, Event, Executor, TaskError
from normviz.runs import Run, Steps, collect
from normviz.runs.store import Store
from normviz.training.events import Step

SECONDS = 300.0
"""How long a test waits for what must happen; generous, since the machine may be busy."""

SHORT = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=20)
LONG = SHORT.replace(steps=20_000, depth=64, seq_len=32, batch=8)
"""About four minutes by the fast engine: longer than any test waits for something else meanwhile."""


def wait_for(
    done: Callable[[], object], what: str | Callable[[], str], seconds: float = SECONDS
) -> float:
    """Poll until `done`, ever less often; returns how many seconds it took. `what` may be told at the end."""
    began = time.monotonic()
    while not done():
        if (passed := time.monotonic() - began) > seconds:
            what = what if isinstance(what, str) else what()
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(min(0.1, 0.01 + passed / 50))
    return time.monotonic() - began


def losses(config: RunConfig, n: int | None = None) -> list[float]:
    """What the run gives in this process: all of it, or its first `n` steps."""
    steps = (event.loss for event in train(config, record=()) if isinstance(event, Step))
    return list(islice(steps, n))


def members(session: int) -> set[int]:
    """Processes of a session that still run: a supervisor and all that it started."""
    found = set()
    # `psutil.process_iter` remembers processes, and leaves one out whose number another one had before.
    for pid in psutil.pids():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):  # ended meanwhile
            if os.getsid(pid) == session and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.add(pid)
    return found


class Lane:
    """A run in a store, as a test looks at it."""

    def __init__(self, store: Store, config: RunConfig, paused: bool = False) -> None:
        self.store, self.id = store, store.enqueue(config, paused)

    @property
    def run(self) -> Run:
        run = self.store.run(self.id)
        assert run is not None
        return run

    @property
    def status(self) -> str:
        return self.run.status

    @property
    def steps(self) -> Steps:
        return self.store.steps(self.run)

    @property
    def n(self) -> int:
        return len(self.steps.step)

    @property
    def pid(self) -> int:
        query = "SELECT pid FROM runs WHERE id = ?"
        return self.store.db.connection.execute(query, (self.id,)).fetchone()["pid"]

    def reach(self, status: str) -> float:
        return wait_for(lambda: self.status == status, lambda: f"{status}, not {self.status}")

    def reach_step(self, n: int) -> float:
        return wait_for(lambda: self.n >= n, lambda: f"step {n} of a run that is {self.run}")

    def stop(self) -> float:
        self.store.control(self.id, "stop")
        return self.reach("stopped")


def keep(store: Store, config: RunConfig, origin: str) -> int:
    """Train a run here and keep it; returns its number."""
    return store.keep_all([collect(train(config))], origin)[0]


class Here(Executor[Any]):
    """As `Local`, in this process: for tests of what comes of tasks, and not of the processes."""

    def __init__(self, function: Callable[..., Any], tasks: Mapping[Any, Any], *_: object) -> None:
        self.function, self.tasks = function, tasks

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[Any]]:
        for task, words in self.tasks.items():
            if stop():
                return
            yield Began(task)
            try:
                yield Ended(task, self.function(*words))
            except TaskError as error:
                yield Ended(task, problem=str(error))

    def close(self) -> list[Ended[Any]]:
        return []


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of maps and claims, and readings of labs, are done in this process."""
    for module in ("maps.drive", "claims.lab_process"):
        monkeypatch.setattr(f"normviz.studies.{module}.Local", Here)
