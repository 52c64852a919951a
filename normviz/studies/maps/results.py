"""What the store has of a grid, for a page that looks again and again: each cell is read once."""

from __future__ import annotations

from collections.abc import Sequence

from ...charts.curve import Floats, picture
from ...runs.store import Store
from .drive import found
from .grid import Cell, Grid
from .points import Point, point


class GridResults:
    """The points of a grid so far, and their loss curves."""

    def __init__(self, store: Store, grid: Grid) -> None:
        self.store, self.grid = store, grid
        self._points: dict[Cell, Point] = {}
        self._losses: dict[int, Floats] = {}

    def refresh(self) -> None:
        """Take in the cells that have ended since the last call."""
        for cell, run in found(self.store, self.missing).items():
            recording = self.store.recording(run, layers=False)
            self._losses[run.id] = recording.losses
            self._points[cell] = point(cell, recording)

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
        losses = [self._losses[seed.run] for seed in seeds]
        return picture(losses, first.cell.config.steps, first.chance, first.floor)
