"""The verdict of a run, in one word and one sentence. Torch-free; the rules are here alone.

diverged   a NaN or inf ended it, or a loss that stayed above 100 times chance for 20 steps
short      fewer than 20 steps: too short to judge
measured   steps=0: measured at initialisation
solved     the mean loss of ten steps came within 2 % of the way from chance to the floor
stuck      ended within 3 % of chance (the best loss without the context) and stayed there
above      ended more than 3 % above chance
unsettled  ended in either place, but its loss still fell, or was far from chance just before
learned    ended below chance
training, queued, stopped, failed   not at its end
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 10
NEAR_CHANCE = 0.03
SOLVED = 0.02
ENOUGH = 20
HALF = 0.5
STILL, ERRORS = 0.02, 3
"""A loss still falls where the last fifth of the steps lies lower than the fifth before it by more
than this share of chance, and by more than so many standard errors of the difference."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """`step` is where it happened (divergence, start of the plateau, solution), if anywhere."""

    kind: str
    sentence: str
    step: int | None = None
    layer: int | None = None


def final_loss(losses: Floats) -> float:
    """Mean of the last tenth of the losses [n], at least of one; NaN without steps."""
    if len(losses) == 0:
        return float("nan")
    with np.errstate(invalid="ignore"):
        return float(np.mean(losses[-max(1, len(losses) // 10) :]))


def of_seeds(ended: Sequence[tuple[str, Floats]], seeds: int) -> str:
    """The verdicts of all seeds in one sentence with the range of their final losses in nats, for example
    "learned in 5 of 5 seeds: loss 1.19 to 1.24".

    `ended` has the verdict's sentence and the losses of each run that reached its end; `seeds` is
    the number of requested runs. A run that diverged has no final loss.
    """
    if not ended:
        return f"none of {seeds} seeds has a result yet"
    heads = [re.split(r":| (?:at step|since|after) ", sentence)[0] for sentence, _ in ended]
    counted = Counter(heads).most_common()
    said = ", ".join(
        f"{head} in {n} of {seeds} seeds" if i == 0 else f"{head} in {n}"
        for i, (head, n) in enumerate(counted)
    )
    finals = [
        final_loss(losses)
        for head, (_, losses) in zip(heads, ended, strict=True)
        if head != "diverged"
    ]
    if finals:
        low, high = f"{min(finals):.2f}", f"{max(finals):.2f}"
        said += f": loss {low}" if low == high else f": loss {low} to {high}"
    left = seeds - len(ended)
    return f"{said}; {left} without a result" if left else said


def running_mean(losses: Floats) -> Floats:
    """[n] means of losses [n], each over a step and up to nine before it."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(0, ends - WINDOW)
    return (sums[ends] - sums[starts]) / (ends - starts)


def still_falls(losses: Floats, chance: float) -> bool:
    """Whether losses [n] were still falling at their end (see STILL); `chance` in nats."""
    fifth = len(losses) // 5
    if len(losses) < ENOUGH or not np.isfinite(losses[-2 * fifth :]).all():
        return False
    before, last = losses[-2 * fifth : -fifth], losses[-fifth:]
    with np.errstate(over="ignore"):
        fall = float(before.mean() - last.mean())
        error = math.sqrt((before.var(ddof=1) + last.var(ddof=1)) / fifth)
    return fall > STILL * chance and fall > ERRORS * error


def diverged(step: int, layer: int | None, where: str | None) -> Verdict:
    """The verdict of a run that met a NaN or inf, or whose loss blew up."""
    lost = where == "blow-up"
    nowhere = "in no block alone" if lost else "in the output head"
    at = nowhere if layer is None else f"first in layer {layer}"
    what = "loss above 100 times chance" if lost else f"{where} not finite"
    return Verdict("diverged", f"diverged at step {step}, {at} ({what})", step, layer)


def judge(losses: Floats, steps: int, chance: float, floor: float | None) -> Verdict:
    """The verdict of a run of `steps` steps that reached its end with finite losses."""
    final = final_loss(losses)
    if steps == 0:
        return Verdict(
            "measured", f"measured at initialisation: loss {final:.3g}, chance {chance:.2f}"
        )
    if len(losses) < ENOUGH:
        return Verdict("short", f"too short to judge: loss {final:.3g} after {len(losses)} steps")
    mean = running_mean(losses)
    if floor is not None:
        below = np.flatnonzero(mean <= floor + SOLVED * (chance - floor))
        below = below[below >= WINDOW - 1]
        if len(below) and final <= floor + 2 * SOLVED * (chance - floor):
            step = int(below[0])
            return Verdict("solved", f"solved at step {step}: loss {final:.3g}", step)
    if final >= chance * (1 - NEAR_CHANCE) and still_falls(losses, chance):
        return Verdict("unsettled", f"still falling: loss {final:.2f}, chance {chance:.2f}")
    if final > chance * (1 + NEAR_CHANCE):
        return Verdict("above", f"above chance: loss {final:.4g}, chance {chance:.2f}")
    if final >= chance * (1 - NEAR_CHANCE):
        return _stuck(mean, final, chance)
    if floor is None:
        return Verdict("learned", f"learned: loss {final:.2f}, chance {chance:.2f}")
    share = (chance - final) / (chance - floor)
    word = "learned" if share >= HALF else "learned little"
    return Verdict("learned", f"{word}: loss {final:.2f}, {share:.0%} of the way to the floor")


def _stuck(mean: Floats, final: float, chance: float) -> Verdict:
    """The plateau at chance, and the step since which the loss has been flat there (within 6 %: the
    mean of ten batches strays by itself). It covers the last tenth of the steps and at least ten."""
    off = np.flatnonzero(np.abs(mean - chance) > 2 * NEAR_CHANCE * chance)
    since = int(off[-1]) + 1 if len(off) else 0
    if since > len(mean) - max(WINDOW, len(mean) // 10):
        return Verdict(
            "unsettled",
            f"not settled near chance: loss {final:.2f}, of the last {WINDOW} steps {mean[-1]:.2f}, "
            f"chance {chance:.2f}",
        )
    return Verdict(
        "stuck", f"stuck at chance since step {since}: loss {final:.2f}, chance {chance:.2f}", since
    )
