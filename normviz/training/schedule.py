"""The learning rate of each step, and the steps at which layers, held-out losses and what a model writes are
recorded. Torch-free."""

from __future__ import annotations

import math

from ..config import RunConfig

DENSE = 32
"""The first steps decide, so each of them is recorded."""

MOST_RECORDS = 400
"""Of the later steps every third is recorded, or fewer, so that a run has at most this many."""


def lr_at(config: RunConfig, step: int) -> float:
    """Learning rate of a step: linear warm-up to the peak, then the schedule.

    Step s of a warm-up of w steps has (s + 1) / w of the peak. The peak is the config's, or that of
    the last edit at or before the step. Linear and cosine fall to zero after the last step.
    """
    peak = peak_at(config, step)
    if step < config.warmup:
        return peak * (step + 1) / config.warmup
    if config.schedule == "constant":
        return peak
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    if config.schedule == "linear":
        return peak * (1.0 - done)
    return peak * 0.5 * (1.0 + math.cos(math.pi * done))


def peak_at(config: RunConfig, step: int) -> float:
    """The peak learning rate that holds at a step: the config's, or that of the last edit up to it."""
    return next((lr for at, lr in reversed(config.lr_edits) if at <= step), config.lr)


def with_lr(config: RunConfig, step: int, lr: float) -> RunConfig:
    """The config of a run whose peak rate becomes `lr` at `step`, in place of all edits from there on.

    An edit that changes nothing is left out. Raises ConfigError for a rate that is not allowed.
    """
    if step == 0:
        return config.replace(lr=lr, lr_edits=())
    earlier = tuple(edit for edit in config.lr_edits if edit[0] < step)
    before = config.replace(lr_edits=earlier)
    if lr == peak_at(before, step):
        return before
    return config.replace(lr_edits=(*earlier, (step, lr)))


def recorded(config: RunConfig) -> tuple[int, ...]:
    """The steps at which layers are recorded by default, ascending; the last step is one of them."""
    steps = max(config.steps, 1)
    stride = max(3, math.ceil((steps - DENSE) / (MOST_RECORDS - DENSE - 1)))
    return tuple(sorted({*range(min(DENSE, steps)), *range(DENSE, steps, stride), steps - 1}))


HELD_OUT_STRIDE, MOST_HELD_OUT = 20, 20
"""The held-out loss is measured every 20 steps, or less often, so that a run has at most 20 of it. It takes
a forward pass, a third of a step: less than 2 % of a run."""


def held_out_at(config: RunConfig) -> tuple[int, ...]:
    """The steps after whose update the held-out loss is measured, ascending; the last one is one of them."""
    steps = max(config.steps, 1)
    stride = max(HELD_OUT_STRIDE, math.ceil(steps / MOST_HELD_OUT))
    return tuple(sorted({*range(stride - 1, steps, stride), steps - 1}))


WRITING_STRIDE, MOST_WRITTEN = 60, 20
"""A model writes once in so many steps on average, and at most so often, not counting step 0."""


def written(config: RunConfig) -> tuple[int, ...]:
    """The steps before whose update a model of a text writes, ascending: closer at first, when it changes
    most, at the pace of the page's replay. The first and the last step are among them; none without steps."""
    last = config.steps - 1
    n = min(MOST_WRITTEN, max(1, config.steps // WRITING_STRIDE))
    return tuple(sorted({round(last * (k / n) ** 2) for k in range(n + 1)})) if config.steps else ()


def coarse(config: RunConfig) -> tuple[int, ...]:
    """The steps at which a cell of a sweep records layers: 0, the powers of two, and the last step.

    Enough for the duel page to open the cell, at about a hundredth of its time.
    """
    last = max(config.steps, 1) - 1
    powers = {2**k for k in range(last.bit_length())}
    return tuple(sorted({0, last, *(step for step in powers if step < last)}))
