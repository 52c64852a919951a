"""The open pages of a server, and the runs and jobs that each of them shows.

One thread reports them to the store with one write every few seconds, so a hundred watchers cost no
more than one. Jobs (maps that fill, claims that run) belong to this server, which ends them itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import Any

from normviz.runs.store import Store
from normviz.studies.maps.jobs import Job, Jobs

BEAT_SECONDS = 5.0
LOG = logging.getLogger(__name__)
UNWATCHED = "nobody had its page open any more"


@dataclass
class OpenPage:
    """The runs and the job that one page shows."""

    runs: set[int] = field(default_factory=set)
    jobs: set[Job] = field(default_factory=set)


class OpenPages:
    """The open pages of this server. Thread-safe.

    `is_open` says whether a page is still connected; `lines` are the job queues whose jobs end when no
    page shows them.
    """

    def __init__(
        self, store: Store, is_open: Callable[[str], bool], lines: Sequence[Jobs[Any]] = ()
    ) -> None:
        self.store, self.is_open, self.lines = store, is_open, lines
        self._pages: dict[str, OpenPage] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._unwatched: dict[Job, float] = {}

    def begin(self, page: str, runs: Iterable[int] = ()) -> None:
        """A page starts a new script run with these runs; later calls add what else it shows."""
        if isinf(self.store.policy.grace):  # nothing ends because no page shows it
            return
        with self._lock:
            self._pages[page] = OpenPage(set(runs))
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, daemon=True)
                self._thread.start()

    def has_open(self, page: str, runs: Iterable[int] = (), job: Job | None = None) -> None:
        """A page shows these runs, or this job."""
        with self._lock:
            if (known := self._pages.get(page)) is not None:
                known.runs.update(runs)
                known.jobs.update([job] if job else [])

    def others(self, page: str, run: int) -> bool:
        """Whether another open page shows this run."""
        with self._lock:
            pages = [
                name
                for name, open_page in self._pages.items()
                if run in open_page.runs and name != page
            ]
        return any(map(self.is_open, pages))

    def refresh(self, seconds: float) -> None:
        """Report the runs that pages show to the store, and end jobs unwatched for the grace period.

        `seconds` have passed since the last call.
        """
        with self._lock:
            self._pages = {
                name: open_page for name, open_page in self._pages.items() if self.is_open(name)
            }
            runs = {run for page in self._pages.values() for run in page.runs}
            jobs = {job for page in self._pages.values() for job in page.jobs}
        if shown := runs & self.store.view_counts().keys():
            self.store.count_views(sorted(shown))
        self._end_unwatched(jobs, seconds)

    def _end_unwatched(self, shown: set[Job], seconds: float) -> None:
        unseen = dict[Job, float]()
        for line in self.lines:
            for job in line.open_jobs():
                past = 0.0 if job in shown else self._unwatched.get(job, 0.0) + seconds
                unseen[job] = past
                if past > self.store.policy.grace and not job.stopped:
                    line.stop(job, UNWATCHED)
        self._unwatched = unseen

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            try:
                self.refresh(BEAT_SECONDS)
            except Exception:  # such as a full disk: the next beat may succeed
                LOG.exception("the open pages could not be written to the store")
