"""Maps that a server fills for its visitors: one sweep at a time, the others wait in the queue."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ...config import RunConfig, estimated_seconds
from ...execution import Began
from .drive import Done, News, missing, sweep
from .grid import Cell, Grid
from .jobs import Job, Jobs


@dataclass(eq=False)
class MapJob(Job):
    """One requested sweep, and its progress.

    todo      cells that the store lacked when it began
    running   cells that are being trained
    """

    grid: Grid
    early: bool
    todo: int = 0
    running: set[Cell] = field(default_factory=set)

    @property
    def what(self) -> tuple[Grid, bool]:
        return self.grid, self.early

    @property
    def configs(self) -> list[RunConfig]:
        return [cell.config for cell in self.grid.cells]

    def take(self, news: News) -> None:
        """Record an event of the sweep."""
        match news:
            case Began(cell):
                self.began = self.began or time.monotonic()
                self.running.add(cell)
            case Done():
                self.running.discard(news.cell)
                self.ended += 1
                self.paid += estimated_seconds(news.cell.config)
                if not news.measured.id:
                    self.failures.append(news.measured.message or "a cell ended without a word")

    def expect(self, cells: list[Cell]) -> None:
        """The cells that it is going to train."""
        self.todo, self.cost = len(cells), sum(estimated_seconds(c.config) for c in cells)


class MapJobs(Jobs[MapJob]):
    """The sweeps that visitors asked for."""

    kind = "map"

    def request(
        self, grid: Grid, early: bool, visitor: str | None = None, address: str = ""
    ) -> MapJob:
        """Fill a grid, now or after the jobs before it. Raises Refused if that is too much here."""
        costs = (estimated_seconds(cell.config) for cell in missing(self.store, grid, early))
        job = MapJob(grid, early, visitor=visitor, address=address)
        return self._join(job, sum(costs) / self.processes)

    def job(self, grid: Grid, early: bool) -> MapJob | None:
        """The open job that fills a grid, whoever asked for it."""
        return next((job for job in self.open_jobs() if job.what == (grid, early)), None)

    def _train(self, job: MapJob) -> None:
        job.expect(missing(self.store, job.grid, job.early))
        try:
            for news in sweep(self.store, job.grid, self.processes, job.early, lambda: job.stopped):
                job.take(news)
        finally:
            job.running.clear()
