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
"""Of so many batches the fastest counts: what else the machine does can only slow one down."""


def sample(call: Call, repeats: int, device: torch.device) -> float:
    """Seconds of one call, after one that is not timed: the mean of a batch of `repeats` in a row, of
    the fastest of three.

    On a GPU by events on its stream, which wait for what was queued: the host's clock would measure
    how fast it queues.
    """
    call()
    batch = _on_cuda if device.type == "cuda" else _on_cpu
    return min(batch(call, repeats) for _ in range(BEST_OF)) / repeats


def _on_cpu(call: Call, repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - began


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
    while (seconds := sample(call, repeats, device)) * repeats < BATCH_SECONDS:
        repeats = max(repeats + 1, int(1.2 * BATCH_SECONDS / max(seconds, 1e-9)))
    return repeats


def one_round(
    calls: Sequence[Sequence[Call]],
    repeats: Sequence[Sequence[int]],
    device: torch.device,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Of each group the seconds of its calls [calls], which take turns in an order of chance."""
    gc.collect()
    gc.disable()
    try:
        found = []
        for group, times in zip(calls, repeats, strict=True):
            seconds = np.empty(len(group))
            for i in rng.permutation(len(group)):
                seconds[i] = sample(group[i], times[i], device)
            found.append(seconds)
        return found
    finally:
        gc.enable()
