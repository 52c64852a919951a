"""How many runs have a process at once: by cores, by paused runs, and on a shared server by memory.

Memory is counted by the estimate with which each run was admitted. A paused run counts until it ends,
because its process keeps its memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from .. import hosted
from ..cores import cores

MAX_PAUSED = 6
"""Each paused run holds a process. If there are more, the visitor with the most loses the first one."""


def default_slots() -> int:
    """Runs that train at once: one per core, and on a shared server up to its limit."""
    here = hosted.limits()
    return min(cores(), here.slots) if here else cores()


class Budget:
    """Memory and processes for runs. `since` is when the next run began to wait for memory."""

    def __init__(self) -> None:
        self.limits = hosted.limits()
        self.since: float | None = None

    def fits(self, gib: float, beside: Iterable[float]) -> bool:
        """Whether a run of this estimate may begin beside the others; alone it always may."""
        held = list(beside)
        return self.limits is None or not held or sum(held) + gib <= self.limits.all_gib

    def record_waiting(self, waits: bool) -> None:
        """Record whether the next run waits for memory now."""
        self.since = (self.since or time.monotonic()) if waits else None

    def paused_limit(self, paused: int) -> int:
        """How many paused runs keep their processes. Each time that a run has waited for memory as long as a
        run may stay unwatched, one fewer does, so that the waiting run begins at last."""
        if self.limits is None:
            return MAX_PAUSED
        if paused and self.since and time.monotonic() - self.since > self.limits.grace:
            self.since = None
            return min(paused - 1, self.limits.paused)
        return self.limits.paused
