"""How many runs have a process at once: by cores, by paused runs, and on a shared server by memory.

Memory is counted by the estimate with which each run was admitted. A paused run counts until it ends,
because its process keeps its memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..cores import cores
from ..policy import Policy


def default_slots(policy: Policy) -> int:
    """Runs that train at once: one per core, up to the server's limit."""
    return int(min(cores(), policy.slots))


class Budget:
    """Memory and processes for runs. `since` is when the next run began to wait for memory."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.since: float | None = None

    def fits(self, gib: float, beside: Iterable[float]) -> bool:
        """Whether a run of this estimate may begin beside the others; alone it always may."""
        held = list(beside)
        return not held or sum(held) + gib <= self.policy.all_gib

    def record_waiting(self, waits: bool) -> None:
        """Record whether the next run waits for memory now."""
        self.since = (self.since or time.monotonic()) if waits else None

    def paused_limit(self, paused: int) -> int:
        """How many paused runs keep their processes. Each time that a run has waited for memory as long as a
        run may stay unwatched, one fewer does, so that the waiting run begins at last."""
        if paused and self.since and time.monotonic() - self.since > self.policy.grace:
            self.since = None
            return min(paused - 1, self.policy.paused)
        return self.policy.paused
