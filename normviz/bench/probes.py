"""Cost of the probes: whole runs of one config with and without probes, interleaved."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch

from ..config import RunConfig
from ..training.events import Event, Step
from ..training.loop import train
from ..training.schedule import recorded

BATCH_STEPS = 10


def measure(config: RunConfig, rounds: int) -> str:
    """A table of milliseconds per step and ratios: medians, and the range over the rounds."""
    torch.set_num_threads(1)
    steps = config.steps // BATCH_STEPS * BATCH_STEPS
    config = config.replace(steps=steps)
    kinds = {"none": (), "default": recorded(config), "every step": range(steps)}
    seconds = np.array([_round(config, kinds, i) for i in range(rounds + 1)])[1:]  # one warms up
    ms = 1e3 * np.median(seconds, axis=0) / steps
    ratio = seconds / seconds[:, :1]
    lines = [
        f"probes: {steps} steps, depth {config.depth}, width {config.width}, one thread; "
        f"{rounds} rounds of whole runs, interleaved every {BATCH_STEPS} steps"
    ]
    for i, (kind, at) in enumerate(kinds.items()):
        low, middle, high = np.percentile(ratio[:, i], [0, 50, 100])
        lines.append(
            f"  {kind:10}  {len(at):4} steps recorded  {ms[i]:6.2f} ms a step  "
            f"ratio {middle:.3f} ({low:.3f} to {high:.3f})"
        )
    return "\n".join(lines)


def _round(
    config: RunConfig, kinds: dict[str, tuple[int, ...] | range], round_: int
) -> list[float]:
    """Seconds of one whole run of each kind; the order changes from round to round."""
    runs = [_turns(train(config, record=at)) for at in kinds.values()]
    seconds = [0.0] * len(runs)
    order = list(range(len(runs)))
    for k in range(config.steps // BATCH_STEPS):
        for i in order[(k + round_) % len(order) :] + order[: (k + round_) % len(order)]:
            seconds[i] += next(runs[i])
    return seconds


def _turns(events: Iterator[Event]) -> Iterator[float]:
    """Seconds of each next ten steps."""
    next(events)
    done = 0
    start = time.perf_counter()
    for event in events:
        done += isinstance(event, Step)
        if isinstance(event, Step) and done % BATCH_STEPS == 0:
            yield time.perf_counter() - start
            start = time.perf_counter()
