"""How many runs have a process at once: by cores, by those that are paused, and on a shared server by
memory.

Memory is counted by the estimate that each run was checked by when it was asked for. A paused run
counts until it ends, since its process holds what it held.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from .. import hosted
from ..cores import cores

MAX_PAUSED = 6
"""Paused runs hold a process each. Of more, the first one of who has most of them is stopped."""


def default_slots() -> int:
    """Runs that train at once: one a core, and on a shared server up to its limit."""
    here = hosted.limits()
    return min(cores(), here.slots) if here else cores()


class Budget:
    """What there is for runs in processes. `since` is when the next one began to wait for memory."""

    def __init__(self) -> None:
        self.limits = hosted.limits()
        self.since: float | None = None

    def fits(self, gib: float, beside: Iterable[float]) -> bool:
        """Whether a run of this estimate may begin beside those of the others; alone it always may."""
        held = list(beside)
        return self.limits is None or not held or sum(held) + gib <= self.limits.all_gib

    def note(self, waits: bool) -> None:
        """Whether the next run waits for memory now."""
        self.since = (self.since or time.monotonic()) if waits else None

    def stay(self, paused: int) -> int:
        """How many of the paused runs keep their processes: one fewer each time that a run has waited
        for memory as long as one may stay unwatched, so that it begins some day."""
        if self.limits is None:
            return MAX_PAUSED
        if paused and self.since and time.monotonic() - self.since > self.limits.grace:
            self.since = None
            return min(paused - 1, self.limits.paused)
        return self.limits.paused
