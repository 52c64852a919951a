"""Claims that a server runs for its visitors: one at a time, the others wait their turn."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from .. import hosted
from ..limits import estimated_seconds
from ..store import Store
from ..sweep import Began, Done, Reused
from ..sweep.fill import turn
from .drive import News, run
from .lab_process import Reading
from .record import Claim
from .stored import Result


@dataclass(eq=False)
class Job:
    """One run of a claim that was asked for, and how far it is.

    total    its runs
    ended    how many of them are there
    result   what came out, at the end
    failure  one sentence, where it failed
    visitor  who asked for it
    """

    claim: Claim
    total: int
    visitor: str | None = None
    ended: int = 0
    result: Result | None = None
    failure: str | None = None
    began: float | None = None
    is_open: bool = True
    waits: bool = True
    stopped: bool = False
    _cost: float = field(default=0.0)
    _paid: float = field(default=0.0)

    @property
    def share(self) -> float:
        """How much of the work is done, by estimated seconds, from 0 to 1."""
        return min(1.0, self._paid / self._cost) if self._cost else 0.0

    @property
    def seconds_left(self) -> float | None:
        """What is left at the pace so far; None before anything was trained."""
        if self.began is None or not self.share:
            return None
        return (time.monotonic() - self.began) * (1 / self.share - 1)

    def take(self, news: News) -> None:
        """Note what the claim's experiment says."""
        match news:
            case Began():
                self.began = self.began or time.monotonic()
            case Reused() | Done() | Reading():
                self.ended += 1
                self._paid += estimated_seconds(news.cell.config)
            case Result():
                self.result = news


class Bench:
    """The claims that visitors asked for, in order. Who asks for one that is there joins it.

    `alone` is held by the one that runs: who shares it takes turns with it.
    """

    def __init__(
        self, store: Store, processes: int | None = None, alone: threading.Lock | None = None
    ) -> None:
        self.store, self.processes = store, processes
        self.alone = alone or threading.Lock()
        self._jobs: list[Job] = []
        self._last: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self, claim: Claim, visitor: str | None = None) -> Job:
        """Run a claim, now or when its turn comes. Raises Refused where that is too much here."""
        with self._lock:
            for job in self._jobs:
                if job.claim is claim and job.is_open and not job.stopped:
                    return job
            opened = [job for job in self._jobs if not job.stopped]
            own = sum(job.visitor == visitor for job in opened)
            hosted.check_fill("claim", own, len(opened))
            cost = sum(estimated_seconds(cell.config) for cell in claim.cells())
            job = Job(claim, len(claim.cells()), visitor, _cost=cost)
            self._jobs.append(job)
            self._last[claim.key] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
        return job

    def job(self, claim: Claim) -> Job | None:
        """The last job of a claim, whoever asked for it."""
        return self._last.get(claim.key)

    def before(self, job: Job) -> int:
        """How many jobs come before this one."""
        with self._lock:
            return self._jobs.index(job) if job in self._jobs else 0

    def open_jobs(self) -> list[Job]:
        """All that wait or run."""
        with self._lock:
            return [job for job in self._jobs if job.is_open]

    def stop(self, job: Job, why: str | None = None) -> None:
        """End it; every run that has ended stays. `why` where nobody chose to."""
        job.stopped = True
        job.failure = why and f"it was stopped: {why}"
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
                    self._run(job)
            except Exception as error:  # the visitor is told, and the next job goes on
                job.failure = str(error).splitlines()[0] if str(error) else repr(error)
            finally:
                with self._lock:
                    self._jobs.remove(job)
                    job.is_open = False

    def _run(self, job: Job) -> None:
        if not job.stopped:  # while it waited
            for news in run(self.store, job.claim, None, self.processes, lambda: job.stopped):
                job.take(news)
