"""The time of a map: a Post-LN map on all cores, with and without early stop, and on one core."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ..config import RunConfig
from ..maps import Done, Grid, cores, make, sweep
from ..runs.store import Store

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
DEPTHS = (2, 4, 8, 16, 32)


def grid() -> Grid:
    """Post-LN with PyTorch's initialisation: five depths, six learning rates, 150 steps."""
    base = RunConfig(scheme="post", init="torch", steps=150)
    return make(base, {"depth": DEPTHS, "lr": RATES})


@dataclass(frozen=True)
class Timed:
    """One way to run it: seconds in all, until the first process was warm, and summed over cells."""

    seconds: float
    start: float
    cells: float
    stopped: int


def measure() -> str:
    """Run the map three times, each into an empty store; a table."""
    n, it = cores(), grid()
    one, many, early = timed(it, 1, False), timed(it, n, False), timed(it, n, True)
    warm = (one.seconds - one.start) / (many.seconds - many.start)
    return "\n".join(
        (
            f"Post-LN, torch init, {len(DEPTHS)} depths x {len(RATES)} learning rates = "
            f"{len(it.cells)} cells of 150 steps",
            _line("one after another, 1 process", one),
            _line(f"{n} processes", many),
            _line(f"{n} processes, early stop", early),
            f"  {n} processes are {warm:.2f} times as fast as one once warm "
            f"({one.seconds / many.seconds:.2f} with their start), with early stop "
            f"{one.seconds / early.seconds:.2f} times",
        )
    )


def _line(what: str, it: Timed) -> str:
    stopped = f", {it.stopped} cells stopped early" if it.stopped else ""
    return (
        f"  {what:28} {it.seconds:6.1f} s, of them {it.start:.1f} s to load PyTorch; sum over cells "
        f"{it.cells:.1f} s{stopped}"
    )


def timed(it: Grid, processes: int, early: bool) -> Timed:
    """Run a grid into an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        began, start, cells, stopped = time.perf_counter(), 0.0, 0.0, 0
        for news in sweep(store, it, processes, early):
            if isinstance(news, Done):
                start = start or time.perf_counter() - began - news.measured.seconds
                cells += news.measured.seconds
                stopped += news.measured.status == "stopped"
        return Timed(time.perf_counter() - began, start, cells, stopped)
