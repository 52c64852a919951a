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

from .. import hosted
from ..runs.store import Store, StoreDamaged, StoreError, StoreFull, retention
from ..runs.store.disk_reserve import give_up, hold, scarce
from . import log

# Ends of runs.

AGAIN_SECONDS = 0.5
HOLD_SECONDS = 30.0


def end(store: Store, run: int, message: str | None, status: str = "failed") -> None:
    """Close a run, if need be with the room that is held back for that.

    Raises StoreError where even that does not do.
    """
    try:
        store.end(run, status, message=message)
    except StoreFull:
        if not give_up(store.folder):
            raise
        store.end(run, status, message=message)


class PendingEnds:
    """What is still to be written of runs that ended: run to sentence and status."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.runs: dict[int, tuple[str | None, str]] = {}
        self.tried = self.held = float("-inf")

    def end(self, run: int, message: str | None, status: str = "failed") -> None:
        """Close a run, now or as soon as that can be written; what was said of it first holds.

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
        """Try again what could not be written; hold room back for the next time."""
        now = time.monotonic()
        if self.runs and now - self.tried > AGAIN_SECONDS:
            self.tried = now
            owed, self.runs = self.runs, {}
            for run, said in owed.items():
                self.end(run, *said)
        if not self.runs and now - self.held > HOLD_SECONDS:
            self.held = now
            hold(self.store.folder)


# Unwatched runs end on a shared server, and the store stays within its limit.

ROUND_SECONDS = 1.0
AT_ONCE = 10
"""Runs dropped in one round, so that hand-outs do not wait for long."""
SPARE_ROOM = 0.02
"""Of the limit, freed beyond it, so that not every new run has to make its own room."""


class UnwatchedRuns:
    """Which runs' counts have not moved for `grace` seconds."""

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self._moved: dict[int, tuple[int, float]] = {}

    def look(self, counts: dict[int, int], now: float) -> list[int]:
        """The overdue runs, of these counts at `now`; one seen for the first time has moved."""
        for run, count in counts.items():
            if run not in self._moved or self._moved[run][0] != count:
                self._moved[run] = count, now
        self._moved = {run: seen for run, seen in self._moved.items() if run in counts}
        return [run for run, (_, moved) in self._moved.items() if now - moved > self.grace]


def too_many(paused: dict[int, str | None], most: int) -> list[int]:
    """Which paused runs (with their visitors) to stop so that at most so many are left: each time the
    first one of the visitor who has most of them."""
    left, gone = dict(sorted(paused.items())), []
    while len(left) > most:
        counts = Counter(left.values())
        run = max(left, key=lambda run: (counts[left[run]], -run))
        del left[run]
        gone.append(run)
    return gone


class Housekeeper:
    """Looks once a second."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.limits, self.room = hosted.limits(), hosted.store_bytes()
        self.unwatched = UnwatchedRuns(self.limits.grace) if self.limits else None
        self.lived = 0.0
        self.last = time.monotonic()

    def round(self) -> list[int]:
        """The runs to stop since nobody watches them; mostly none."""
        past = time.monotonic() - self.last
        if past < ROUND_SECONDS:
            return []
        self.last += past
        if scarce(self.store.folder) is None:  # else pages can't write that they watch
            self.lived += min(past, 2 * ROUND_SECONDS)  # else it slept, and the pages with it
        self.make_room()
        if self.unwatched is None:
            return []
        runs = self.unwatched.look(self.store.looked_at(), self.lived)
        for run in runs:
            log.say("unwatched", run)
        return runs

    def make_room(self) -> None:
        """Drop the oldest runs where the store has reached its limit."""
        if self.room is not None:
            goal = int(self.room * (1 - SPARE_ROOM))
            for run in islice(retention.drop(self.store, self.room, goal, linked=True), AT_ONCE):
                log.say("dropped", run, why="the store is full")
