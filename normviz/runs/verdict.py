"""The verdict of a run, in one word and one sentence. Torch-free.

`assets/player/verdict.js` has the rules once more, for the page that trains in a browser.

diverged         a NaN or inf ended it, or a loss that stayed above 100 times chance for 20 steps
short            fewer than 20 steps: too short to judge
measured         steps=0: measured at initialisation
solved           the loss is above the floor by at most 2 % of the way from chance
at chance        the loss is within 3 % of chance (the best loss without the context), and neither surely
                 falls nor rises; more steps may leave it
back at chance   the same, where the run had been below
learned          ended more than 3 % below chance, at least half of the way to the floor
learned little   the same, less than half of the way
learned in part  the same, where the noise hides which
memorised        on a finite training set: the training loss is below half of chance, the held-out loss is not
                 3 % below chance
training only    the same, where the training loss is not that small
still falling    surely falls near or above chance, however slowly
above            ended more than 3 % above chance, and does not surely fall
not settled      the noise allows no other word
observed         a model of somebody's own that was watched: nothing is judged
training, queued, stopped, failed   not at its end

Beside its word a run that learned is "still falling" where more steps matter (`Verdict.falls`).

A word is said only where the losses show it by ERRORS standard errors. These are the errors of a straight
line through the tail of the losses (`tail_of`). `normviz bench verdicts` counts the wrong words. On a finite
training set a run that learned is judged by its last held-out loss as it was measured, without an error.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import formats

WINDOW = 10
"""Steps of a running mean."""
NEAR_CHANCE = 0.03
"""Share of chance within which a loss is at chance."""
SOLVED = 0.02
"""Share of the way from chance to the floor that may be left of a solved task."""
ENOUGH = 20
"""Steps from which on a run is judged."""
HALF = 0.5
"""Share of the way from chance to the floor that parts learned from learned little; of chance, below which a
training loss counts as memorised."""
STILL = 0.02
"""More steps matter where a line falls by more than this share of chance in a fifth of the steps."""
ERRORS = 2.576
"""Standard errors by which a word must hold: 1 % of normal noise is further off, to either side."""
TAILS = (2 / 3, 1 / 2, 1 / 3, 1 / 4, 1 / 6)
"""Lengths of the tail that are tried, as shares of the steps; each has at least ENOUGH steps."""
BENT = 3.0
"""A line does not fit where the curvature, or the correlation of neighbouring residuals, is more than so
many standard errors above zero."""
FAR_ONE, FAR_MEAN = 4.0, 2.0
"""A loss lies outside of a band where it is so many standard errors beyond it; the same for a mean."""
LEARNED = ("learned", "learned little", "learned in part", "solved")
"""Verdicts of runs that ended below chance."""
PLATEAUS = ("at chance", "back at chance")
"""Verdicts of runs that ended on a plateau at chance."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """`step` is where it happened (divergence, start of the plateau, solution), if anywhere.

    falls   its loss surely still fell at its last step: of a run that learned, so fast that more steps
            matter (see STILL); of any other however slowly
    """

    kind: str
    sentence: str
    step: int | None = None
    layer: int | None = None
    falls: bool = False

    @property
    def head(self) -> str:
        """The sentence up to its first step or number: "learned little", "diverged"."""
        return re.split(r":|,? (?:at step|since|after) ", self.sentence)[0]

    @property
    def in_list(self) -> str:
        """The sentence without its loss and its reasons, which do not fit in a list: "solved at step 9"."""
        return re.split(r": | \(|; ", self.sentence)[0]


def final_loss(losses: Floats) -> float:
    """Mean of the last tenth of the losses [n], at least of one; NaN without steps."""
    if len(losses) == 0:
        return float("nan")
    with np.errstate(invalid="ignore"):
        return float(np.mean(losses[-max(1, len(losses) // 10) :]))


def running_mean(losses: Floats) -> Floats:
    """[n] means of losses [n], each over a step and up to nine before it."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(0, ends - WINDOW)
    return (sums[ends] - sums[starts]) / (ends - starts)


@dataclass(frozen=True)
class Tail:
    """A straight line through the last losses of a run; each number with its standard error.

    start   the step at which the tail begins
    level   the line at the middle of the last tenth of the steps, in nats: what `final_loss` measures
    mean    the mean of the tail, in nats
    fall    by how much the line falls in a fifth of the run's steps, in nats
    noise   standard deviation of a loss about the line
    """

    start: int
    level: tuple[float, float]
    mean: tuple[float, float]
    fall: tuple[float, float]
    noise: float

    @property
    def falls(self) -> bool:
        """Whether the loss surely falls, however slowly."""
        fall, error = self.fall
        return fall > ERRORS * error

    def falls_fast(self, chance: float) -> bool:
        """Whether it surely falls, and by more than STILL: so fast that more steps matter."""
        return self.falls and self.fall[0] > STILL * chance

    def is_flat(self, chance: float) -> bool:
        """Whether it surely neither falls nor rises by more than STILL; nor surely falls at all, nor surely
        rises by half of that."""
        fall, error = self.fall[0], ERRORS * self.fall[1]
        return (
            abs(fall) + error <= STILL * chance
            and fall <= error
            and -fall <= max(error, STILL / 2 * chance)
        )


def tail_of(losses: Floats) -> Tail:
    """The line through the longest of TAILS of losses [n], n at least ENOUGH, on which a line fits.

    Where none fits, the shortest counts, and its bend is added to the errors. The noise of a step is taken
    as independent of the step before; where the residuals are correlated the errors are larger.
    """
    n = len(losses)
    with np.errstate(over="ignore", invalid="ignore"):
        for share in TAILS:
            tail, bend = _line(losses, max(ENOUGH, round(share * n)))
            if bend == 0:
                return tail
    (level, of_level), (fall, of_fall) = tail.level, tail.fall  # pyrefly: ignore[unbound-name] (TAILS is not empty)
    of_level += bend / ERRORS  # pyrefly: ignore[unbound-name]
    of_fall += 3 * bend / ERRORS * n / 5 / (n - tail.start)  # the slope at the end, not on average
    return replace(tail, level=(level, of_level), fall=(fall, of_fall))


def _line(losses: Floats, m: int) -> tuple[Tail, float]:
    """The line through the last m of the losses [n], and by how much they bend away from it at the end,
    in nats: 0 where the line fits."""
    n, last = len(losses), losses[-m:]
    at = np.linspace(-1, 1, m)
    curve = at * at - np.mean(at * at)
    size, of_curve = float(at @ at), float(curve @ curve)
    mean, slope = float(last.mean()), float(at @ last) / size
    rest = last - mean - slope * at
    squares = float(rest @ rest)
    noise = math.sqrt(squares / (m - 2))
    bend = float(curve @ rest) / of_curve
    of_bend = math.sqrt(max(0.0, squares - bend * bend * of_curve) / (m - 3) / of_curve)
    correlation = float(rest[1:] @ rest[:-1]) / squares if squares > 0 else 0.0
    fits = abs(bend) <= BENT * of_bend and correlation <= BENT / math.sqrt(m)
    r = min(max(correlation, 0.0), 0.9)
    of_rest = noise * math.sqrt((1 + r) / (1 - r))
    of_mean, of_slope = of_rest / math.sqrt(m), of_rest / math.sqrt(size)
    end, fifth = 1 - n / 10 / m, 2 * n / 5 / m
    tail = Tail(
        n - m,
        (mean + slope * end, math.hypot(of_mean, of_slope * end)),
        (mean, of_mean),
        (-slope * fifth, of_slope * fifth),
        noise,
    )
    return tail, 0.0 if fits else abs(bend) * float(curve[-1])


def still_falls(losses: Floats, chance: float) -> bool:
    """Whether losses [n] were still falling at their end so fast that more steps matter (see STILL);
    `chance` in nats. Where it is not known, as of an observed run, the first loss stands for it."""
    if len(losses) < ENOUGH or not np.isfinite(losses).all():
        return False
    return tail_of(losses).falls_fast(chance if np.isfinite(chance) else losses[0])


def diverged(step: int, layer: int | None, where: str | None) -> Verdict:
    """The verdict of a run that met a NaN or inf, or whose loss blew up."""
    at = "in the output head" if layer is None else f"first in layer {layer}"
    words = f"{at} ({where} not finite)"
    if where == "blow-up":  # a loss has no layer
        began = "" if layer is None else f"; stream blew up {at}"
        words = f"loss above 100 times chance{began}"
    return Verdict("diverged", f"diverged at step {step}, {words}", step, layer)


def observed(losses: Floats, is_done: bool) -> Verdict:
    """What is said of a model that was watched: its losses [n], NaN where unknown. Chance and floor of its
    task are not known, so nothing is judged."""
    kind = "observed" if is_done else "training"
    known = losses[np.isfinite(losses)]
    words = f"{kind}, {len(losses)} steps"
    if len(known):
        words += f": loss {formats.loss(known[0])} to {formats.loss(final_loss(known))}"
    return Verdict(kind, words, falls=is_done and still_falls(losses, math.nan))


def judge(losses: Floats, steps: int, chance: float, floor: float | None) -> Verdict:
    """The verdict of a run of `steps` steps that reached its end with finite losses."""
    final = final_loss(losses)
    if steps == 0:
        return Verdict(
            "measured",
            f"measured at initialisation: loss {formats.loss(final)}, chance {chance:.2f}",
        )
    if len(losses) < ENOUGH:
        return Verdict(
            "short", f"too short to judge: loss {formats.loss(final)} after {len(losses)} steps"
        )
    tail = tail_of(losses)
    if (since := _solved(losses, tail, chance, floor)) is not None:
        return Verdict("solved", f"solved at step {since}: loss {formats.loss(final)}", since)
    if (since := _at_chance(losses, tail, chance)) is not None:
        kind = "back at chance" if _was_below(losses[:since], tail, chance) else "at chance"
        numbers = f"loss {final:.2f}, chance {chance:.2f}"
        return Verdict(kind, f"{kind} since step {since}: {numbers}", since)
    level, error = tail.level
    error *= ERRORS
    near = NEAR_CHANCE * chance
    if max(level + error, final) < chance - near:
        return _learned(tail, final, chance, floor)
    if tail.falls:
        words = f"still falling: loss {final:.2f}, chance {chance:.2f}"
        return Verdict("still falling", words, falls=True)
    if min(level - error, final) > chance + near:
        return Verdict("above", f"above chance: loss {final:.4g}, chance {chance:.2f}")
    return Verdict(
        "not settled",
        f"not settled: loss {final:.2f}, give or take {error:.2g}, chance {chance:.2f}",
    )


def _solved(losses: Floats, tail: Tail, chance: float, floor: float | None) -> int | None:
    """The step since which the loss has been within SOLVED of the floor; None where it surely is not."""
    if floor is None:
        return None
    bar = floor + SOLVED * (chance - floor)
    if any(value + ERRORS * error > bar for value, error in (tail.mean, tail.level)):
        return None
    return _since(losses, tail, -math.inf, bar)


def beside_held_out(
    verdict: Verdict, final: float, chance: float, held_out: float | None, is_finite: bool
) -> Verdict:
    """What a verdict on training losses comes to where a held-out loss in nats was measured.

    On a finite training set (`is_finite`) the training loss says nothing about other examples: a run that
    learned is judged by its held-out loss. Where each batch is new, nothing can be memorised.
    """
    if verdict.kind not in LEARNED or held_out is None or not is_finite:
        return verdict
    numbers = f"training {final:.2f}, held-out {held_out:.2f}, chance {chance:.2f}"
    if held_out <= chance * (1 - NEAR_CHANCE):
        kind = words = "learned"
    elif final < HALF * chance:
        kind = words = "memorised"
    else:
        kind, words = "training only", "learned in training only"
    still = ", training still falling" * verdict.falls
    return Verdict(kind, f"{words}: {numbers}{still}", falls=verdict.falls)


def _at_chance(losses: Floats, tail: Tail, chance: float) -> int | None:
    """The step since which the loss has been flat within NEAR_CHANCE of chance; None where it may not be."""
    mean, error = tail.mean
    near = NEAR_CHANCE * chance
    within = abs(mean - chance) + ERRORS * error <= near and abs(tail.level[0] - chance) <= near
    if not within or not tail.is_flat(chance):
        return None
    return _since(losses, tail, chance - near, chance + near)


def _was_below(losses: Floats, tail: Tail, chance: float) -> bool:
    """Whether a mean of ten of the losses [n] was surely more than NEAR_CHANCE below chance."""
    if len(losses) < WINDOW:
        return False
    means = np.convolve(losses, np.full(WINDOW, 1 / WINDOW), "valid")
    slack = FAR_ONE * tail.noise / math.sqrt(WINDOW)
    return bool(means.min() < chance * (1 - NEAR_CHANCE) - slack)


def _since(losses: Floats, tail: Tail, low: float, high: float) -> int | None:
    """The first step from which no loss, and no mean of the ten around a step, lies outside of the band
    from `low` to `high` by more than the noise explains; None where one of the tail does."""
    since = 0
    for width, far in ((1, FAR_ONE), (WINDOW, FAR_MEAN)):
        window = np.ones(width)
        steps = np.convolve(np.ones(len(losses)), window, "same")
        mean = np.convolve(losses, window, "same") / steps
        slack = far * tail.noise / np.sqrt(steps)
        off = np.flatnonzero((mean < low - slack) | (mean > high + slack))
        since = max(since, int(off[-1]) + 1 if len(off) else 0)
    return since if since <= tail.start else None


def _learned(tail: Tail, final: float, chance: float, floor: float | None) -> Verdict:
    if floor is None:
        word, words = "learned", f"chance {chance:.2f}"
    else:
        level, error = tail.level
        half = chance - HALF * (chance - floor)
        if max(level + ERRORS * error, final) <= half:
            word = "learned"
        elif min(level - ERRORS * error, final) > half:
            word = "learned little"
        else:
            word = "learned in part"
        words = f"{(chance - final) / (chance - floor):.0%} of the way to the floor"
    falls = tail.falls_fast(chance) if word == "learned" else tail.falls
    still = ", still falling" * falls
    return Verdict(word, f"{word}: loss {final:.2f}, {words}{still}", falls=falls)
