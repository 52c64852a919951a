"""The ends of runs that could not be written down when they came, as on a full disk.

They are said again until they can be, so that no run stays open for want of a process that ended it.
"""

from __future__ import annotations

import time

from ..store import Store, StoreDamaged, StoreError, StoreFull
from ..store.disk_reserve import give_up, hold

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


class Owed:
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
