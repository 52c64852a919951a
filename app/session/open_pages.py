"""The open pages of a server, and the runs and cells that each of them shows.

One thread reports them to the store with one write every few seconds, so a hundred watchers cost no
more than one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from math import isinf

from normviz.runs.store import Store

BEAT_SECONDS = 5.0
LOG = logging.getLogger(__name__)


class OpenPages:
    """The open pages of this server: the runs that each shows. `is_open` says whether a page is still
    connected. Thread-safe."""

    def __init__(self, store: Store, is_open: Callable[[str], bool]) -> None:
        self.store, self.is_open = store, is_open
        self._pages: dict[str, set[int]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, page: str, runs: Iterable[int] = ()) -> None:
        """A page starts a new script run with these runs; later calls add what else it shows."""
        if isinf(self.store.policy.grace):  # nothing ends because no page shows it
            return
        with self._lock:
            self._pages[page] = set(runs)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, daemon=True)
                self._thread.start()

    def has_open(self, page: str, runs: Iterable[int]) -> None:
        """A page shows these runs too."""
        with self._lock:
            if (known := self._pages.get(page)) is not None:
                known.update(runs)

    def others(self, page: str, run: int) -> bool:
        """Whether another open page shows this run."""
        with self._lock:
            pages = [name for name, runs in self._pages.items() if run in runs and name != page]
        return any(map(self.is_open, pages))

    def refresh(self) -> None:
        """Report the runs that pages show to the store."""
        with self._lock:
            self._pages = {name: runs for name, runs in self._pages.items() if self.is_open(name)}
            runs = set[int]().union(*self._pages.values())
        if shown := runs & self.store.view_counts().keys():
            self.store.count_views(sorted(shown))

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            try:
                self.refresh()
            except Exception:  # such as a full disk: the next beat may succeed
                LOG.exception("the open pages could not be written to the store")
