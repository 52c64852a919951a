"""Time from a click to the first recorded step, and from Stop to the end, through store and supervisor."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..duel.presets import PRESETS
from ..execution.client import SupervisorClient
from ..runs.store import Store

READY_SECONDS = 120.0


def measure(clicks: int) -> str:
    """Start a supervisor on an empty store and click Train and Stop `clicks` times; a table."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        backend = SupervisorClient(store)
        began = time.perf_counter()
        backend.ensure()
        wait_for(lambda: store.supervisor()[1], READY_SECONDS)
        warm = time.perf_counter() - began
        try:
            rows = [_one(store) for _ in range(clicks)]
        finally:
            backend.close()
    first, stop = 1e3 * np.array(rows).T
    return (
        f"two hero lanes, warm, {clicks} clicks; the supervisor was ready after {warm:.1f} s\n"
        f"  click to first recorded step of both lanes  median {np.median(first):4.0f} ms, "
        f"worst {first.max():4.0f} ms\n"
        f"  stop to both lanes ended                    median {np.median(stop):4.0f} ms, "
        f"worst {stop.max():4.0f} ms"
    )


def _one(store: Store) -> tuple[float, float]:
    """Seconds to the first step, and seconds to the stop."""
    wait_for(lambda: store.supervisor()[1], READY_SECONDS)
    time.sleep(0.5)  # the pause of a visitor, in which new spare workers warm up
    began = time.perf_counter()
    runs = [store.enqueue(config) for config in PRESETS["hero"].lanes()]
    wait_for(lambda: all(_has_steps(store, run) for run in runs), 30)
    first = time.perf_counter() - began
    time.sleep(0.3)
    began = time.perf_counter()
    for run in runs:
        store.control(run, "stop")
    wait_for(lambda: not any(_is_open(store, run) for run in runs), 30)
    return first, time.perf_counter() - began


def _has_steps(store: Store, run: int) -> bool:
    record = store.run(run)
    return record is not None and len(store.steps(record).step) > 0


def _is_open(store: Store, run: int) -> bool:
    record = store.run(run)
    return record is not None and record.is_open


def wait_for(done: Callable[[], bool], seconds: float) -> None:
    """Poll every two milliseconds. Raises TimeoutError."""
    until = time.perf_counter() + seconds
    while not done():
        if time.perf_counter() > until:
            raise TimeoutError(f"waited {seconds:g} s in vain")
        time.sleep(0.002)
