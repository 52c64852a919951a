"""Statistics over seeds: a median with its range, and whether two series of the same seeds differ.

A number of a handful of seeds is a median with its range. Two numbers count as different only if at least
three pairs of seeds were run, the difference has the same sign in every pair, and its 95 % Student interval
excludes zero. The interval alone is not enough: runs that either train or do not are not normally
distributed. Otherwise the two are "not distinguishable".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from statistics import fmean, median, stdev
from typing import Literal

import numpy as np

LEVEL = 0.05
"""The share of wrong decisions that tests allow."""
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    2.040, 2.037, 2.035, 2.032, 2.030, 2.028, 2.026, 2.024, 2.023, 2.021,
    2.020, 2.018, 2.017, 2.015, 2.014, 2.013, 2.012, 2.011, 2.010,
)  # fmt: skip
"""Student's two-sided 95 % quantile for 1, 2, ... 49 degrees of freedom."""
T90 = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
    1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
    1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697,
    1.696, 1.694, 1.692, 1.691, 1.690, 1.688, 1.687, 1.686, 1.685, 1.684,
    1.683, 1.682, 1.681, 1.680, 1.679, 1.679, 1.678, 1.677, 1.677,
)  # fmt: skip
"""The same for 90 %: one-sided 95 %."""
Z95, Z90 = 1.959964, 1.644854
"""The normal distribution's two-sided quantiles."""
Confidence = Literal["90 %", "95 %"]
PAIRS = 3
"""Pairs of seeds that are needed at least to tell two series apart."""


@dataclass(frozen=True)
class Interval:
    """A mean of `n` seeds with the ends of its Student interval."""

    mean: float
    low: float
    high: float
    n: int


def interval(
    values: Sequence[float],
    ratio: bool = False,
    confidence: Confidence = "95 %",
    variance: float | None = None,
) -> Interval | None:
    """Student's interval of the mean; with `ratio` of the geometric mean. None for fewer than two numbers,
    where one is not finite, or, of ratios, not above 0. `variance` is that of the mean (of ratios of its
    logarithm) where it is not the one over the numbers; None where it is not finite."""
    return _interval(tuple(values), ratio, confidence, variance)


def _student(n: int, confidence: Confidence) -> float:
    """Student's two-sided quantile; beyond the table by its expansion in 1 / n (Abramowitz and Stegun,
    26.7.5)."""
    table, z = (T95, Z95) if confidence == "95 %" else (T90, Z90)
    if n <= len(table):
        return table[n - 1]
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)


@lru_cache(4096)  # the page of the claims asks for the same ones again and again
def _interval(
    values: tuple[float, ...], ratio: bool, confidence: Confidence, variance: float | None
) -> Interval | None:
    n = len(values)
    if (
        n < 2
        or not math.isfinite(variance or 0.0)
        or not all(math.isfinite(x) and (x > 0 or not ratio) for x in values)
    ):
        return None
    numbers = [math.log(x) for x in values] if ratio else list(values)
    if variance is None:
        variance = stdev(numbers) ** 2 / n
    half = _student(n - 1, confidence) * math.sqrt(variance)
    mean = fmean(numbers)
    shown = math.exp if ratio else float
    return Interval(shown(mean), shown(mean - half), shown(mean + half), n)


def p_value(distance: float, error: float, freedom: int) -> float:
    """Two-sided p of Student's test: of a mean this far from a value, with this standard error and so many
    degrees of freedom. 0 where the error is 0 and the distance is not."""
    if error == 0:
        return 1.0 if distance == 0 else 0.0
    angle = math.atan(distance / error / math.sqrt(freedom))
    tail, half = (_cosine_power(start, freedom - 1) for start in (angle, 0.0))
    return tail / half


def _cosine_power(start: float, power: int) -> float:
    """The integral of cos^power from `start` to pi / 2: Student's density with t = sqrt(n) tan(angle)."""
    angles = np.linspace(start, math.pi / 2, 2001)
    return float(np.trapezoid(np.cos(angles) ** power, angles))


def sign_test(count: int, n: int) -> float:
    """One-sided p of `count` of `n` seeds, if half of all seeds were such."""
    return sum(math.comb(n, k) for k in range(count, n + 1)) / 2**n


def is_majority(count: int, n: int) -> bool:
    """Whether `count` of `n` seeds are more than half of all seeds, by a sign test at 5 %: with 5 seeds
    all of them, with 8 at least 7, with 20 at least 15, with 40 at least 26."""
    return sign_test(count, n) <= LEVEL


def holm(p_values: Sequence[float]) -> list[bool]:
    """Which are decided if at most `LEVEL` of all such families may have one that is wrong (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    passed = takewhile(
        lambda at: p_values[order[at]] <= LEVEL / (len(order) - at), range(len(order))
    )
    decided = {order[at] for at in passed}
    return [i in decided for i in range(len(p_values))]


def benjamini_hochberg(p_values: Sequence[float]) -> list[bool]:
    """Which are decided if at most the share `LEVEL` of those that are decided may be wrong (Benjamini and
    Hochberg 1995)."""
    n, ordered = len(p_values), sorted(p_values)
    limit = max((p for k, p in enumerate(ordered, 1) if p <= LEVEL * k / n), default=-1.0)
    return [p <= limit for p in p_values]


@dataclass(frozen=True)
class Spread:
    """A number from `n` seeds: its median and the whole range.

    The range is an interval for the median with the confidence `coverage`, whatever the distribution:
    1 - 2^(1-n), so 0.75 for three seeds and 0.94 for five.
    """

    median: float
    low: float
    high: float
    n: int

    @property
    def coverage(self) -> float:
        """The confidence of the range as an interval for the median."""
        return 1 - 2.0 ** (1 - self.n)

    def text(self, form: str = ".3f") -> str:
        """ "1.21 (1.20 to 1.23, 3 seeds)"."""
        if self.n == 1:
            return f"{self.median:{form}} (1 seed)"
        return f"{self.median:{form}} ({self.low:{form}} to {self.high:{form}}, {self.n} seeds)"


def spread(values: Sequence[float]) -> Spread:
    """Median and range of at least one number."""
    return Spread(median(values), min(values), max(values), len(values))


def wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a rate of which k of n trials are seen; (0, 1) without a trial."""
    if n == 0:
        return 0.0, 1.0
    z = Z95
    middle = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Comparison:
    """The paired differences first - second: their mean, 95 % interval, and whether they tell apart."""

    difference: float
    low: float
    high: float
    pairs: int
    differs: bool

    def sentence(self, first: str, second: str) -> str:
        """In words, with the losses' unit."""
        if not self.differs:
            why = f"with {self.pairs} seed{'s' * (self.pairs != 1)}"
            if self.pairs < PAIRS:
                why += f": at least {PAIRS} are needed"
            return f"{first} and {second}: not distinguishable {why}"
        less, more = (first, second) if self.difference < 0 else (second, first)
        ends = sorted((abs(self.low), abs(self.high)))
        return (
            f"{less} ends {abs(self.difference):.3f} nats below {more} "
            f"({ends[0]:.3f} to {ends[1]:.3f}, {self.pairs} paired seeds)"
        )


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Losses of the same seeds, pair by pair. Raises ValueError for unequal or empty ones."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n, mean = len(differences), fmean(differences)
    if n == 1:
        return Comparison(mean, -math.inf, math.inf, 1, False)
    bounds = interval(differences)
    low, high = (bounds.low, bounds.high) if bounds else (-math.inf, math.inf)
    one_sign = all(d > 0 for d in differences) or all(d < 0 for d in differences)
    return Comparison(mean, low, high, n, n >= PAIRS and one_sign and not low <= 0 <= high)
