"""The learning rate of each step, and the steps at which layers are recorded. Torch-free."""

from __future__ import annotations

import math

from .config import RunConfig

EVERY_STEP_UP_TO = 400
"""Runs of at most this many steps record their layers at every step."""


def lr_at(config: RunConfig, step: int) -> float:
    """Learning rate of a step: linear warm-up to the peak, then the schedule.

    Step s of a warm-up of w steps has (s + 1) / w of the peak. The peak is the config's, or that of
    the last edit at or before the step. Linear and cosine fall to zero after the last step.
    """
    peak = next((lr for at, lr in reversed(config.lr_edits) if at <= step), config.lr)
    if step < config.warmup:
        return peak * (step + 1) / config.warmup
    if config.schedule == "constant":
        return peak
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    if config.schedule == "linear":
        return peak * (1.0 - done)
    return peak * 0.5 * (1.0 + math.cos(math.pi * done))


def recorded(config: RunConfig) -> range:
    """The steps at which layers are recorded by default: every n-th, at most 400 of them."""
    steps = max(config.steps, 1)
    return range(0, steps, math.ceil(steps / EVERY_STEP_UP_TO))
