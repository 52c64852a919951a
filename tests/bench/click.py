"""Time from a click to the first recorded step, and from Stop to the end, through store and supervisor."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import typer

from normviz.cli.bench_load import spread
from normviz.cli.bench_server import wait_for
from normviz.execution.client import SupervisorClient
from normviz.lessons.presets import PRESETS
from normviz.runs.store import Store


def main(clicks: int = 10) -> None:
    """Click Train and Stop of two hero lanes so many times, on a supervisor with an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        backend = SupervisorClient(store)
        began = time.perf_counter()
        backend.ensure()
        wait_for(lambda: store.supervisor()[1], "the supervisor is not ready")
        print(f"two hero lanes; the supervisor was ready after {time.perf_counter() - began:.1f} s")
        try:
            first, stop = zip(*(_one(store) for _ in range(clicks)), strict=True)
        finally:
            backend.close()
    print("  click to first recorded step of both lanes, ms:", spread(first, digits=0))
    print("  stop to both lanes ended, ms:", spread(stop, digits=0))


def _one(store: Store) -> tuple[float, float]:
    """Milliseconds to the first step, and from the stop to the end."""
    wait_for(lambda: store.supervisor()[1], "the supervisor is not ready")
    time.sleep(0.5)  # the pause of a visitor, in which new spare workers warm up
    began = time.perf_counter()
    runs = [store.enqueue(config) for config in PRESETS["hero"].lanes()]
    wait_for(lambda: all(len(store.losses(run)) for run in runs), "no first step")
    first = time.perf_counter() - began
    time.sleep(0.3)
    began = time.perf_counter()
    for run in runs:
        store.control(run, "stop")
    wait_for(lambda: not any(_is_open(store, run) for run in runs), "the runs do not end")
    return 1e3 * first, 1e3 * (time.perf_counter() - began)


def _is_open(store: Store, run: int) -> bool:
    record = store.run(run)
    return record is not None and record.is_open


if __name__ == "__main__":
    typer.run(main)
