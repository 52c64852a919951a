"""Stored runs for tests, made without training."""

from __future__ import annotations

import os

import numpy as np

from normviz import RunConfig
from normviz.catalog.probes import recorded_by
from normviz.runs.store import Store
from normviz.training.events import Diverged, Started, Step

SMALL = RunConfig(depth=3, steps=40)
LARGE = SMALL.replace(depth=48)
"""Forty steps of it take about 170 kB."""


def kept(store: Store, config: RunConfig = SMALL, status: str = "finished", steps: int = 40) -> int:
    """A run of a loss that falls to 1.5, in this state."""
    run = store.enqueue(config)
    if status == "queued":
        return run
    begin(store, run, steps)
    if status == "paused":
        store.set_status(run, "paused")
    elif status != "running":
        bad = Diverged(steps - 1, 2, "activation") if status == "diverged" else None
        store.end(run, status, bad, "no memory" if status == "failed" else None)
    return run


def begin(store: Store, run: int, steps: int = 40, seconds: float = 0.0) -> None:
    """A queued run trains, and took its first steps in so many seconds."""
    found = store.run(run)
    assert found is not None
    config = found.trained
    store.started(run, Started(config, "cpu", 1, 1234, 3.3, 1.1, None), os.getpid(), False)
    store.db.connection.execute(
        "UPDATE runs SET started = started - ? WHERE id = ?", (seconds, run)
    )
    layers = np.ones((len(recorded_by("one")), config.depth + 1))
    losses = [3.3 - 1.8 * min(1.0, step / 20) for step in range(steps)]
    store.append(run, [Step(i, loss, 1e-3, 1.0, layers) for i, loss in enumerate(losses)])


def fill(store: Store, n: int = 6, status: str = "finished") -> list[int]:
    """Runs of other seeds, each of about 170 kB."""
    return [kept(store, LARGE.replace(init_seed=seed), status) for seed in range(n)]
