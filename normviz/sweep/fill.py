"""Maps that a server fills for its visitors: one sweep at a time, the others wait their turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from .. import hosted
from ..limits import estimated_seconds
from ..store import Store
from .drive import Done, Reused, sweep
from .grid import Cell, Grid
from .pool import Began


@dataclass(eq=False)
class Job:
    """One sweep that was asked for, and how far it is.

    todo      cells that the store lacked when it began
    ended     how many of them have ended
    running   cells that are being trained
    failures  a sentence for each cell that failed
    visitor   who asked for it
    why       why it was stopped, where nobody chose to
    """

    grid: Grid
    early: bool
    visitor: str | None = None
    why: str | None = None
    todo: int = 0
    ended: int = 0
    running: set[Cell] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    began: float | None = None
    is_open: bool = True
    waits: bool = True
    stopped: bool = False
    _cost: float = 0.0
    _paid: float = 0.0

    @property
    def share(self) -> float:
        """How much of the work is done, by estimated seconds, from 0 to 1."""
        return self._paid / self._cost if self._cost else 0.0

    @property
    def seconds_left(self) -> float | None:
        """What is left at the pace so far; None before anything has ended."""
        if self.began is None or not self._paid:
            return None
        return (time.monotonic() - self.began) * (1 / self.share - 1)

    def take(self, news: Reused | Began | Done) -> None:
        """Note what the sweep says."""
        match news:
            case Began():
                self.began = self.began or time.monotonic()
                self.running.add(news.cell)
            case Done():
                self.running.discard(news.cell)
                self.ended += 1
                self._paid += estimated_seconds(news.cell.config)
                if news.run is None:
                    self.failures.append(news.measured.message or "a cell ended without a word")

    def expect(self, cells: list[Cell]) -> None:
        """The cells that it is going to train."""
        self.todo, self._cost = len(cells), sum(estimated_seconds(c.config) for c in cells)


class Stoppable(Protocol):
    """A job that may wait for its turn."""

    waits: bool
    stopped: bool


@contextmanager
def turn(alone: threading.Lock, job: Stoppable) -> Iterator[None]:
    """Hold the lock for a job, as soon as it is free; not for one that is stopped meanwhile."""
    held = False
    while not job.stopped and not held:
        held = alone.acquire(timeout=0.1)
    job.waits = False
    try:
        yield
    finally:
        if held:
            alone.release()


class Filler:
    """The sweeps that visitors asked for, in order. Who asks for one that is there joins it.

    In hosted mode a visitor has one at a time, and each is short: so the order they came in is fair.
    `alone` is held by the one that is filled: who shares it takes turns with it.
    """

    def __init__(
        self, store: Store, processes: int | None = None, alone: threading.Lock | None = None
    ) -> None:
        self.store, self.processes = store, processes
        self.alone = alone or threading.Lock()
        self._jobs: list[Job] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self, grid: Grid, early: bool, visitor: str | None = None) -> Job:
        """Fill a grid, now or when its turn comes. Raises Refused where that is too much here."""
        with self._lock:
            for job in self._jobs:
                if job.is_open and not job.stopped and (job.grid, job.early) == (grid, early):
                    return job
            opened = [job for job in self._jobs if not job.stopped]
            own = sum(job.visitor == visitor for job in opened)
            hosted.check_fill("map", own, len(opened))
            job = Job(grid, early, visitor)
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
        return job

    def job(self, grid: Grid, early: bool) -> Job | None:
        """The open job that fills a grid, whoever asked for it."""
        with self._lock:
            return next(
                (j for j in self._jobs if j.is_open and (j.grid, j.early) == (grid, early)), None
            )

    def before(self, job: Job) -> int:
        """How many jobs come before this one."""
        with self._lock:
            return self._jobs.index(job) if job in self._jobs else 0

    def open_jobs(self) -> list[Job]:
        """All that wait or are filled."""
        with self._lock:
            return [job for job in self._jobs if job.is_open]

    def stop(self, job: Job, why: str | None = None) -> None:
        """End it; every cell that has ended stays. `why` where nobody chose to."""
        job.stopped, job.why = True, why
        with self._lock:
            if job in self._jobs[1:]:  # it has not begun
                self._jobs.remove(job)
                job.is_open = False

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._thread = None
                    return
                job = self._jobs[0]
            try:
                with turn(self.alone, job):
                    self._fill(job)
            except Exception as error:  # the visitor is told, and the next job goes on
                job.failures.append(str(error).splitlines()[0] if str(error) else repr(error))
            finally:
                with self._lock:
                    self._jobs.remove(job)
                    job.is_open = False
                    job.running.clear()

    def _fill(self, job: Job) -> None:
        from .drive import missing

        if job.stopped:  # while it waited
            return
        job.expect(missing(self.store, job.grid, job.early))
        stop = lambda: job.stopped  # noqa: E731
        for news in sweep(self.store, job.grid, self.processes, job.early, stop):
            job.take(news)
