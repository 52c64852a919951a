"""The median of paired ratios, and its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios, and an interval that contains the true median with 95 % confidence."""

    median: float
    low: float
    high: float

    def overlaps(self, other: Ratio) -> bool:
        """Whether the two intervals have a common point."""
        return self.low <= other.high and other.low <= self.high


def ratio(seconds: NDArray[np.float64], reference: NDArray[np.float64]) -> Ratio:
    """Ratio of two series of the same rounds, [n] each, n at least 6.

    Both ends of the interval are sample ratios: the number of draws below the median is binomial,
    whatever the distribution. Raises ValueError for too few rounds.
    """
    values = np.sort(seconds / reference)
    rank = outer_rank(len(values))
    return Ratio(float(np.median(values)), float(values[rank - 1]), float(values[-rank]))


def outer_rank(n: int) -> int:
    """Rank, from 1 and from either end, of the ends of the 95 % interval for a median of n numbers."""
    tail, rank = 0.0, 0
    while (tail := tail + comb(n, rank) / 2**n) <= (1 - CONFIDENCE) / 2:
        rank += 1
    if rank == 0:
        raise ValueError(f"{n} rounds give no 95 % interval, at least 6 are needed")
    return rank
