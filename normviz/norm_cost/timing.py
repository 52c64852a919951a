"""Seconds of a call on a device, and rounds in which all calls take turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

Call = Callable[[], object]
BATCH_SECONDS = 1e-3
"""Of calls in a row, at least: below that the clock and the loop would be in it."""
BEST_OF = 3
"""Of so many batches in a round the fastest counts: what else the machine does can only slow one down."""


def batch(call: Call, repeats: int, device: torch.device) -> float:
    """Seconds of one call, the mean of `repeats` in a row. A short one is called once before, untimed:
    what ran meanwhile has taken its place in the caches.

    On a GPU by events on its stream, which wait for what was queued: the host's clock would measure
    how fast it queues.
    """
    if repeats > 1:
        call()
    return (_on_cuda if device.type == "cuda" else _on_cpu)(call, repeats) / repeats


def _on_cpu(call: Call, repeats: int) -> float:
    """Of one thread its processor time, which leaves out the waiting for a core that others have."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    began = clock()
    for _ in range(repeats):
        call()
    return clock() - began


def _on_cuda(call: Call, repeats: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3  # it says milliseconds


def calibrate(call: Call, device: torch.device) -> int:
    """How many calls a batch needs. Also warms the call up."""
    for _ in range(2):
        call()
    repeats = 1
    while (seconds := batch(call, repeats, device)) * repeats < BATCH_SECONDS:
        repeats = max(repeats + 1, int(1.2 * BATCH_SECONDS / max(seconds, 1e-9)))
    return repeats


def one_round(
    calls: Sequence[Sequence[Call]],
    repeats: Sequence[Sequence[int]],
    device: torch.device,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Of each group the seconds of its calls [calls]: the fastest of three turns, in each of which all
    calls of the group have one batch, in an order of chance."""
    gc.collect()
    gc.disable()
    try:
        found = []
        for group, times in zip(calls, repeats, strict=True):
            seconds = np.full(len(group), np.inf)
            for _ in range(BEST_OF):
                for i in rng.permutation(len(group)):
                    seconds[i] = min(seconds[i], batch(group[i], times[i], device))
            found.append(seconds)
        return found
    finally:
        gc.enable()
