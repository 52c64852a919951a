"""Who watches: the open pages of a server, and which runs and jobs each of them has open.

One thread tells the store for all pages, a write every few seconds, so that a hundred watchers cost
no more than one. Jobs (maps that fill, claims that run) are this server's own: it ends them itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import hosted
from .store import Store
from .sweep.jobs import Job, Jobs

BEAT_SECONDS = 5.0
LOG = logging.getLogger(__name__)
UNWATCHED = "nobody had its page open any more"


@dataclass
class Page:
    """What one open page has open."""

    runs: set[int] = field(default_factory=set)
    jobs: set[Job] = field(default_factory=set)


class Watchers:
    """The open pages of this server. Safe among threads.

    `is_open` says whether a page is still connected; `lines` hold the jobs that end when nobody
    watches them.
    """

    def __init__(
        self, store: Store, is_open: Callable[[str], bool], lines: Sequence[Jobs[Any]] = ()
    ) -> None:
        self.store, self.is_open, self.lines = store, is_open, lines
        self._pages: dict[str, Page] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._unseen: dict[Job, float] = {}

    def begin(self, page: str, runs: Iterable[int] = ()) -> None:
        """A page is drawn anew, with these runs; what else it has open is told again."""
        if hosted.limits() is None:  # nobody acts on it
            return
        with self._lock:
            self._pages[page] = Page(set(runs))
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, daemon=True)
                self._thread.start()

    def has_open(self, page: str, runs: Iterable[int] = (), job: Job | None = None) -> None:
        """A page has these runs, or this job, open."""
        with self._lock:
            if (known := self._pages.get(page)) is not None:
                known.runs.update(runs)
                known.jobs.update([job] if job else [])

    def others(self, page: str, run: int) -> bool:
        """Whether another open page has this run open."""
        with self._lock:
            pages = [name for name, it in self._pages.items() if run in it.runs and name != page]
        return any(map(self.is_open, pages))

    def look(self, seconds: float) -> None:
        """Tell the store what is watched, and end jobs that nobody watched for the grace period.

        `seconds` have passed since the last look.
        """
        with self._lock:
            self._pages = {name: it for name, it in self._pages.items() if self.is_open(name)}
            runs = {run for page in self._pages.values() for run in page.runs}
            jobs = {job for page in self._pages.values() for job in page.jobs}
        if seen := runs & self.store.looked_at().keys():
            self.store.look_at(sorted(seen))
        self._end_unseen(jobs, seconds)

    def _end_unseen(self, seen: set[Job], seconds: float) -> None:
        here, unseen = hosted.limits(), dict[Job, float]()
        for line in self.lines:
            for job in line.open_jobs():
                past = 0.0 if job in seen else self._unseen.get(job, 0.0) + seconds
                unseen[job] = past
                if here and past > here.grace and not job.stopped:
                    line.stop(job, UNWATCHED)
        self._unseen = unseen

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            try:
                self.look(BEAT_SECONDS)
            except Exception:  # a full disk: the next beat may do
                LOG.exception("what is watched could not be told to the store")
