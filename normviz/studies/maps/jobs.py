"""Jobs that a server trains for its visitors beside single runs: one at a time, in a queue."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from ...config import RunConfig
from ...cores import cores
from ...model import texts
from ...policy import Kind, Open, demand
from ...runs.store import Store

LOOK_SECONDS = 0.1
"""A job that waits for the shared lock checks this often whether it was stopped."""


@dataclass(eq=False, kw_only=True)
class Job(ABC):
    """A visitor's request, and its progress.

    visitor   the visitor that asked for it
    address   a name of the visitor's network address, empty where it is unknown
    ended     how many of its runs have ended
    failures  a sentence for each of what failed
    why       why it was stopped, unless somebody chose to
    cost      estimated seconds of one core of all that it trains; `paid` of what has ended
    """

    visitor: str | None = None
    address: str = ""
    ended: int = 0
    failures: list[str] = field(default_factory=list)
    why: str | None = None
    began: float | None = None
    cost: float = 0.0
    paid: float = 0.0
    is_open: bool = True
    waits: bool = True
    stopped: bool = False

    @property
    @abstractmethod
    def what(self) -> Hashable:
        """What it trains. A request for the same joins this job."""

    @property
    @abstractmethod
    def configs(self) -> Sequence[RunConfig]:
        """The settings of all its runs."""

    @property
    def whose(self) -> str | None:
        """The network address, or the visitor where that is unknown."""
        return f"@{self.address}" if self.address else self.visitor

    @property
    def share(self) -> float:
        """How much of the work is done, by estimated seconds, from 0 to 1."""
        return min(1.0, self.paid / self.cost) if self.cost else 0.0

    @property
    def seconds_left(self) -> float | None:
        """What is left at the pace so far; None before anything has ended."""
        if self.began is None or not self.paid:
            return None
        return (time.monotonic() - self.began) * (1 / self.share - 1)


J = TypeVar("J", bound=Job)


class Jobs(ABC, Generic[J]):
    """The jobs of one kind that visitors asked for, in order.

    Each network address has one, then each its second, and so on. The job that runs holds `alone`; of
    kinds of jobs that share this lock, only one runs.
    """

    kind: ClassVar[Kind]

    def __init__(
        self, store: Store, processes: int | None = None, alone: threading.Lock | None = None
    ) -> None:
        self.store, self.processes = store, processes or store.policy.processes or cores()
        self.alone = alone or threading.Lock()
        self._jobs: list[J] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _train(self, job: J) -> None:
        """Do the job, until its end or until it is `stopped`."""

    def _join(self, wanted: J, seconds: float) -> J:
        """The open job that does the same, or this one from now on, which takes so many estimated seconds
        here. Raises Refused."""
        with self._lock:
            opened = [job for job in self._jobs if not job.stopped]
            for job in opened:
                if job.what == wanted.what:
                    return job
            own = sum(job.visitor == wanted.visitor for job in opened)
            near = sum(job.whose == wanted.whose for job in opened)
            there = Open(own, near, len(opened))
            demand(
                self.store.policy.may_fill(self.kind, wanted.configs, seconds, there)
                or texts.obstacle(*wanted.configs)
            )
            self._jobs.append(wanted)
            self._order()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
        return wanted

    def before(self, job: J) -> int:
        """How many jobs come before this one."""
        with self._lock:
            return self._jobs.index(job) if job in self._jobs else 0

    def open_jobs(self) -> list[J]:
        """All that wait or run."""
        with self._lock:
            return list(self._jobs)

    def stop(self, job: J, why: str | None = None) -> None:
        """End it; every run that has ended stays. `why` where nobody chose to."""
        job.stopped, job.why = True, why
        with self._lock:
            if job in self._jobs[1:]:  # it has not begun
                self._close(job)

    def _close(self, job: J) -> None:
        self._jobs.remove(job)
        job.is_open = False

    def _order(self) -> None:
        """Sort the jobs by how many of the same address come before; the first one runs and stays."""
        before = Counter[str | None]()
        places = dict[J, int]()
        for job in self._jobs:
            places[job] = before[job.whose]
            before[job.whose] += 1
        self._jobs.sort(key=lambda job: places[job])

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._thread = None
                    return
                job = self._jobs[0]
            try:
                self._run_alone(job)
            except Exception as error:  # the visitor gets a sentence, and the next job begins
                job.failures.append(str(error).splitlines()[0] if str(error) else repr(error))
            finally:
                with self._lock:
                    self._close(job)

    def _run_alone(self, job: J) -> None:
        """Hold the shared lock for a job, as soon as it is free; not for one stopped meanwhile."""
        while not job.stopped:
            if self.alone.acquire(timeout=LOOK_SECONDS):
                try:
                    job.waits = False
                    self._train(job)
                finally:
                    self.alone.release()
                return
