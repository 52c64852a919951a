"""The numbers of a claim, one value per seed: of a cell, of an arm, and of two of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from ..maps.summary import wortsman
from .evidence import FINAL, Quantity, Sample, point_of, recording_of
from .record import Number

Of = Callable[[Sample], float]


def value(arm: str, quantity: Quantity, **where: object) -> Of:
    """A quantity of the one cell with these settings."""
    return lambda sample: quantity.of(sample.run(arm, **where))


def slope(arm: str, x: str, quantity: Quantity, **where: object) -> Of:
    """Exponent p of the power law quantity ~ x^p: least squares of the logarithms over the cells."""

    def of(sample: Sample) -> float:
        cells = sample.runs(arm, **where)
        return log_slope([getattr(c.config, x) for c in cells], [quantity.of(c) for c in cells])

    return of


def layer_slope(arm: str, y: str, x: str, step: int, **where: object) -> Of:
    """Exponent p of y ~ x^p over the blocks of one run, for two probes."""

    def of(sample: Sample) -> float:
        it = recording_of(sample.run(arm, **where))
        layers = range(1, it.depth + 1)
        return log_slope([it.at(x, step, b) for b in layers], [it.at(y, step, b) for b in layers])

    return of


def best(arm: str, **where: object) -> Of:
    """The lowest final loss among the cells with these settings, at most chance."""
    return lambda sample: min(FINAL.of(one) for one in sample.runs(arm, **where))


def largest_rate(arm: str, **where: object) -> Of:
    """The largest learning rate that trains; 0 where none does."""
    return lambda sample: max(
        (one.config.lr for one in sample.runs(arm, **where) if point_of(one).trains), default=0.0
    )


def training(arm: str, **where: object) -> Of:
    """How many of the cells with these settings train, as a share."""
    return lambda sample: fmean(point_of(one).trains for one in sample.runs(arm, **where))


def over(first: Of, second: Of) -> Of:
    """One number of a seed over another."""
    return lambda sample: first(sample) / second(sample)


def minus(first: Of, second: Of) -> Of:
    """One number of a seed minus another."""
    return lambda sample: first(sample) - second(sample)


def log_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Least-squares slope of log y over log x; NaN where a number is not above 0 and finite."""
    if len(xs) < 2 or not all(0 < v < math.inf for v in (*xs, *ys)):
        return math.nan
    u, v = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_u, mean_v = fmean(u), fmean(v)
    spread = sum((a - mean_u) ** 2 for a in u)
    return sum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / spread


HALF = 2.21
"""Half of the way from chance to the floor of the Markov task, in nats: below it a run trains."""


def final(arm: str, words: str, **where: object) -> Number:
    """The final loss of one cell."""
    return Number(f"final loss, {words}", value(arm, FINAL, **where), unit="nats")


def rate(arm: str, words: str, **where: object) -> Number:
    """The largest rate of an arm that trains."""
    return Number(f"the largest rate that trains, {words}", largest_rate(arm, **where), "g")


def sensitivity(arm: str) -> Number:
    """Learning-rate sensitivity of Wortsman et al. 2023 over the arm's rates."""

    def of(sample: Sample) -> float:
        return wortsman([one.point for one in sample.runs(arm) if one.point is not None])[0]

    return Number(f"learning-rate sensitivity, {arm}", of, ".3f", "nats")
