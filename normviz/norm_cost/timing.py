"""Seconds of a call on a device, and rounds that time all calls."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

Call = Callable[[], object]
BATCH_SECONDS = 1e-3
"""Least duration of a batch of calls; a shorter one would measure the clock and the loop."""
BEST_OF = 3
"""Batches per round and call. The fastest counts, because other work can only slow one down."""


def batch(call: Call, repeats: int, device: torch.device) -> float:
    """Mean seconds of one call over `repeats` in a row. A short call runs once before, untimed, to
    load the caches.

    On a GPU it uses events on the stream, which wait for the queued work. The host's clock would measure
    only the queueing.
    """
    if repeats > 1:
        call()
    return (_on_cuda if device.type == "cuda" else _on_cpu)(call, repeats) / repeats


def _on_cpu(call: Call, repeats: int) -> float:
    """With one thread, processor time, which excludes waiting for a busy core."""
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
    return start.elapsed_time(end) / 1e3  # from milliseconds


def calibrate(call: Call, device: torch.device) -> int:
    """Number of calls per batch. Also warms the call up."""
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
    """For each group the seconds of its calls [calls]: the fastest of three repeats, each of which
    times one batch of every call in the group, in random order."""
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
