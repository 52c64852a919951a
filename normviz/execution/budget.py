"""How many runs have a process at once: by cores, by paused runs, by the memory of GPUs, and on a shared
server by memory.

Memory is counted by the estimate with which each run was admitted. A paused run counts until it ends,
because its process keeps its memory. What other programs have on a GPU is not known.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from ..cores import Gpu, cores
from ..policy import Policy

CONTEXT_GIB = 0.5
"""What a process takes of a GPU beside its run."""
GPU_SHARE = 0.8
"""The share of a GPU's memory that estimates may fill."""


def default_slots(policy: Policy) -> int:
    """Runs that train at once: one per core, up to the server's limit."""
    return int(min(cores(), policy.slots))


class Budget:
    """Memory and processes for runs. `since` is when the next run began to wait for memory."""

    def __init__(self, policy: Policy, gpus: Sequence[Gpu] = ()) -> None:
        self.policy, self.gpus = policy, gpus
        self.since: float | None = None

    def fits(self, gib: float, beside: Iterable[float]) -> bool:
        """Whether a run of this estimate may begin beside the others; alone it always may."""
        held = list(beside)
        return not held or sum(held) + gib <= self.policy.all_gib

    def gpu_for(self, gib: float, beside: Iterable[tuple[int, float]]) -> int | None:
        """The number of the GPU where a run of this estimate begins, that with the most left; None where it
        waits. `beside` has the GPU and the estimate of each other run. Alone on a GPU it always may begin."""
        left = [GPU_SHARE * gpu.gib for gpu in self.gpus]
        is_free = [True] * len(left)
        for gpu, other in beside:
            left[gpu] -= other + CONTEXT_GIB
            is_free[gpu] = False
        for gpu in sorted(range(len(left)), key=lambda gpu: -left[gpu]):
            if is_free[gpu] or gib + CONTEXT_GIB <= left[gpu]:
                return gpu
        return None

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
