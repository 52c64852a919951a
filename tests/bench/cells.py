"""How long `normviz sweep` spends on its cells beside training them: each gets a copy of one result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import typer

from normviz.config import RunConfig
from normviz.execution import Began, Ended, Executor
from normviz.execution.cell import measure
from normviz.limits import MAX_SWEEP_CELLS
from normviz.runs.store import Store
from normviz.studies.maps import Cell, drive, make
from normviz.studies.maps.points import read_points


class Copies(Executor[Cell]):
    """Trains nothing: the result of each cell is that of the first."""

    def __init__(self, _: object, cells: dict[Cell, object], *more: object) -> None:
        self.cells, self.result = list(cells), measure(next(iter(cells)).config)

    def events(
        self, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Began[Cell] | Ended[Cell]]:
        for cell in self.cells:
            yield Began(cell)
            yield Ended(cell, replace(self.result, config=cell.config))

    def close(self) -> list[Ended[Cell]]:
        return []


def main(cells: int = 10_000) -> None:
    """Print seconds of a sweep of so many cells (a multiple of 100) of the hero's length, of starting it
    again, and of reading all results; and the size of the store."""
    rates = [1e-4 * 1.01**i for i in range(cells // 100)]
    grid = make(RunConfig(depth=4, steps=200), {"depth": (4, 8), "lr": rates}, 50, MAX_SWEEP_CELLS)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(drive, "Local", Copies):
        store = Store(Path(folder))
        for what in ("stored", "found again"):
            began = time.perf_counter()
            n = sum(1 for it in drive.sweep(store, grid) if not isinstance(it, Began))
            print(f"{n:,} cells {what} in {time.perf_counter() - began:.1f} s", flush=True)
        began = time.perf_counter()
        n = len(read_points(store, grid))
        print(f"{n:,} results read in {time.perf_counter() - began:.1f} s")
        size = sum(it.stat().st_size for it in Path(folder).iterdir())
        print(f"{size / 1e6:,.0f} MB")


if __name__ == "__main__":
    typer.run(main)
