"""What the store has of a grid, for a page that looks again and again: each cell is read once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ...charts.curve import Floats, picture
from ...runs import shipped
from ...runs.store import Store
from .drive import found
from .grid import Cell, Grid
from .points import Point, point


class GridResults:
    """The points of a grid so far, and their loss curves: of the store's results, else of those that ship."""

    def __init__(self, store: Store, grid: Grid) -> None:
        self.store, self.grid = store, grid
        self._points: dict[Cell, Point] = {}
        self._losses: dict[Cell, Floats] = {}

    def refresh(self) -> None:
        """Take in the cells that have ended since the last call."""
        for cell, run in found(self.store, self.missing).items():
            recording = self.store.recording(run, layers=False)
            self._losses[cell] = recording.losses
            self._points[cell] = point(cell, recording)
        if any(cell.key in shipped.cell_keys() for cell in self.missing):
            ships = shipped_cells(self.grid)
            for cell in self.missing:
                if cell in ships:
                    self._points[cell], self._losses[cell] = ships[cell]

    @property
    def missing(self) -> list[Cell]:
        """Cells without a result, in the order in which they are run."""
        return [cell for cell in self.grid.cells if cell not in self._points]

    @property
    def points(self) -> list[Point]:
        """All results, axis by axis and seed by seed."""
        order = sorted(self._points, key=lambda cell: (cell.at, cell.seed))
        return [self._points[cell] for cell in order]

    def curve(self, seeds: Sequence[Point]) -> str:
        """The losses of a cell's seeds as the address of a small picture."""
        first = seeds[0]
        losses = [self._losses[seed.cell] for seed in seeds]
        return picture(losses, first.cell.config.steps, first.chance, first.floor)


@lru_cache(maxsize=32)
def shipped_cells(grid: Grid) -> dict[Cell, tuple[Point, Floats]]:
    """The points and losses of a grid's cells that ship, read once for all visitors and without the store."""
    cells = {cell.key: cell for cell in grid.cells}
    recordings = shipped.cells(cells.keys())
    return {
        cells[recording.key]: (point(cells[recording.key], recording), recording.losses)
        for recording in recordings
    }
