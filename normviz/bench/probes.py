"""What the probes cost: two trainings of one config, with and without, taking turns."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch

from ..config import RunConfig
from ..events import Event
from ..schedule import recorded
from ..training import train

STEPS_A_TURN = 10


def measure(config: RunConfig, rounds: int) -> str:
    """A table of milliseconds a step and the ratio, as medians with quartiles over the rounds."""
    torch.set_num_threads(1)
    steps = STEPS_A_TURN * (rounds + 2)
    long = config.replace(steps=steps)
    every = _turns(train(long, record=range(steps)))
    none = _turns(train(long, record=()))
    times = []
    for i in range(rounds + 1):
        pair = (every, none) if i % 2 else (none, every)
        taken = [next(turn) for turn in pair]
        times.append(taken if i % 2 else taken[::-1])
    every_ms, none_ms = 1e3 * np.array(times[1:]).T / STEPS_A_TURN  # the first turn warms up
    ratio = np.percentile(every_ms / none_ms, [25, 50, 75])
    share = len(recorded(config)) / max(config.steps, 1)
    return (
        f"probes, depth {config.depth}, width {config.width}, one thread, {rounds} interleaved "
        f"pairs of {STEPS_A_TURN} steps\n"
        f"  without probes          {np.median(none_ms):7.2f} ms a step\n"
        f"  all probes, every step  {np.median(every_ms):7.2f} ms a step\n"
        f"  ratio                   {ratio[1]:7.3f}  (quartiles {ratio[0]:.3f} to {ratio[2]:.3f})\n"
        f"a run of {config.steps} steps records every step in {share:.0%} of its steps: "
        f"{1 + (ratio[1] - 1) * share:.3f} times the time without probes"
    )


def _turns(events: Iterator[Event]) -> Iterator[float]:
    """Seconds of each next ten steps."""
    next(events)
    while True:
        start = time.perf_counter()
        for _ in range(STEPS_A_TURN):
            next(events)
        yield time.perf_counter() - start


