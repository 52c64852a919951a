"""The supervisor's housekeeping: the ends of runs, unwatched runs, and the store's size limit.

An end that could not be written, as on a full disk, is kept and tried again, so that no run stays open
after its process has ended. Pages that show an open run increase its count in the store every few seconds.
A run is unwatched if its count does not change for a while. That time passes only while the housekeeper
looks, so a wall clock that jumps, a machine that was asleep, or a full disk ends no run.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice
from math import isinf

from ..runs.store import Store, StoreDamaged, StoreError, StoreFull, retention
from ..runs.store.disk_reserve import give_up, hold, scarce
from . import log

# Ends of runs.

AGAIN_SECONDS = 0.5
HOLD_SECONDS = 30.0


def end(store: Store, run: int, message: str | None, status: str = "failed") -> None:
    """Close a run, if need be with the disk reserve.

    Raises StoreError if even that is not enough.
    """
    try:
        store.end(run, status, message=message)
    except StoreFull:
        if not give_up(store.folder):
            raise
        store.end(run, status, message=message)


class PendingEnds:
    """Ends of runs that are not written yet: sentence and status by run."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.runs: dict[int, tuple[str | None, str]] = {}
        self.tried = self.held = float("-inf")

    def end(self, run: int, message: str | None, status: str = "failed") -> None:
        """Close a run, now or as soon as that can be written. The first message of a run counts.

        Raises StoreDamaged.
        """
        if run in self.runs:
            return
        try:
            end(self.store, run, message, status)
        except StoreDamaged:
            raise
        except StoreError:
            self.runs[run] = message, status

    def settle(self) -> None:
        """Try again to write the ends; refill the disk reserve for the next time."""
        now = time.monotonic()
        if self.runs and now - self.tried > AGAIN_SECONDS:
            self.tried = now
            pending, self.runs = self.runs, {}
            for run, (message, status) in pending.items():
                self.end(run, message, status)
        if not self.runs and now - self.held > HOLD_SECONDS:
            self.held = now
            hold(self.store.folder)


# Unwatched runs end on a shared server, and the store stays within its limit.

ROUND_SECONDS = 1.0
AT_ONCE = 10
"""Most runs deleted in one round, so that hand-outs do not wait for long."""
SPARE_SHARE = 0.02
"""Share of the limit that is freed beyond it, so that not every new run has to free its own space."""


class UnwatchedRuns:
    """Finds runs whose counts have not changed for `grace` seconds."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._changed: dict[int, tuple[int, float]] = {}

    def update(self, counts: dict[int, int], now: float) -> list[int]:
        """The overdue runs, from these counts at `now`; a new run counts as changed."""
        for run, count in counts.items():
            if run not in self._changed or self._changed[run][0] != count:
                self._changed[run] = count, now
        self._changed = {run: entry for run, entry in self._changed.items() if run in counts}
        return [run for run, (_, changed) in self._changed.items() if now - changed > self.grace]


def too_many(paused: dict[int, str | None], most: int) -> list[int]:
    """Which paused runs (run to visitor) to stop so that at most so many are left: each time the first run
    of the visitor with the most paused runs."""
    left, gone = dict(sorted(paused.items())), []
    while len(left) > most:
        counts = Counter(left.values())
        run = max(left, key=lambda run: (counts[left[run]], -run))
        del left[run]
        gone.append(run)
    return gone


class Housekeeper:
    """Once a second finds runs to stop, and keeps the store within its limit."""

    def __init__(self, store: Store) -> None:
        self.store = store
        grace, self.store_limit = store.policy.grace, store.policy.store_bytes
        self.unwatched = None if isinf(grace) else UnwatchedRuns(grace)
        self.lived = 0.0
        self.last = time.monotonic()

    def round(self) -> list[int]:
        """The runs to stop because nobody watches them; mostly none."""
        past = time.monotonic() - self.last
        if past < ROUND_SECONDS:
            return []
        self.last += past
        # On a full disk pages can't write that they show a run. While the machine slept, so did they.
        if scarce(self.store.folder) is None:
            self.lived += min(past, 2 * ROUND_SECONDS)
        self.delete_oldest()
        if self.unwatched is None:
            return []
        runs = self.unwatched.update(self.store.view_counts(), self.lived)
        for run in runs:
            log.event("unwatched", run)
        return runs

    def delete_oldest(self) -> None:
        """Delete the oldest runs if the store has reached its limit."""
        if self.store_limit is not None:
            goal = int(self.store_limit * (1 - SPARE_SHARE))
            for run in islice(
                retention.drop(self.store, self.store_limit, goal, linked=True), AT_ONCE
            ):
                log.event("dropped", run, why="the store is full")
