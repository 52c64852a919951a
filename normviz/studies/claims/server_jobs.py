"""Claims that a server runs for its visitors: one at a time, the others wait in the queue."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from ...config import RunConfig, estimated_seconds
from ...runs.store import Store
from ..maps import Began, Done, Reused
from ..maps.jobs import Job, Jobs
from .drive import News, run
from .lab_process import Reading
from .record import Claim
from .sentences import expected
from .stored import ClaimResult, shipped_result


@dataclass(eq=False)
class ClaimJob(Job):
    """One requested run of a claim: its progress, and `result` when it is done."""

    claim: Claim
    result: ClaimResult | None = None

    def __post_init__(self) -> None:
        self.cost = sum(estimated_seconds(cell.config) for cell in self.claim.cells())

    @property
    def what(self) -> str:
        return self.claim.key

    @property
    def configs(self) -> list[RunConfig]:
        return [cell.config for cell in self.claim.cells()]

    @property
    def total(self) -> int:
        """Number of its runs."""
        return len(self.claim.cells())

    def take(self, news: News) -> None:
        """Update the progress from news of the claim's experiment."""
        match news:
            case Began():
                self.began = self.began or time.monotonic()
            case Reused() | Done() | Reading():
                self.ended += 1
                self.paid += estimated_seconds(news.cell.config)
            case ClaimResult():
                self.result = news


class ClaimJobs(Jobs[ClaimJob]):
    """The queue of requested claims."""

    kind = "claim"

    def __init__(
        self, store: Store, processes: int | None = None, alone: threading.Lock | None = None
    ) -> None:
        super().__init__(store, processes, alone)
        self._last: dict[str, ClaimJob] = {}

    def request(self, claim: Claim, visitor: str | None = None, address: str = "") -> ClaimJob:
        """Run a claim, or queue it. Raises Refused if this server does not allow it."""
        seconds = expected(claim, shipped_result(claim), None, self.processes)
        job = self._join(ClaimJob(claim, visitor=visitor, address=address), seconds)
        self._last[claim.key] = job
        return job

    def job(self, claim: Claim) -> ClaimJob | None:
        """The last job of a claim, whichever visitor requested it."""
        return self._last.get(claim.key)

    def _train(self, job: ClaimJob) -> None:
        for news in run(self.store, job.claim, None, self.processes, lambda: job.stopped):
            job.take(news)
