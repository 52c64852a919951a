"""BatchNorm's running statistics after training passes over one batch."""

from __future__ import annotations

from dataclasses import dataclass

from .norms import Array, Bools, moments


@dataclass(frozen=True)
class Running:
    """Running mean and variance [features].

    variance  in PyTorch's convention, from the batch's unbiased variance
    biased    in Keras' convention, from the biased variance
    start     remaining share of the initial values (mean 0, variance 1)
    seen      the batch's mean and unbiased variance, which each pass averages in
    passes    training passes done; 0 for a batch of one row, which PyTorch refuses
    rows      rows that each pass averaged over
    """

    mean: Array
    variance: Array
    biased: Array
    start: float
    seen: tuple[Array, Array]
    passes: int
    rows: int


def running(x: Array, counted: Bools, passes: int, momentum: float) -> Running:
    """Apply statistic = (1 - momentum) statistic + momentum batch statistic `passes` times.

    x is [rows, features], `counted` [rows].
    """
    rows = int(counted.sum())
    made = passes if rows > 1 else 0
    start = (1 - momentum) ** made
    mean, variance = moments(x, counted)
    unbiased = variance * rows / max(rows - 1, 1)
    return Running(
        mean=(1 - start) * mean,
        variance=start + (1 - start) * unbiased,
        biased=start + (1 - start) * variance,
        start=float(start),
        seen=(mean, unbiased),
        passes=made,
        rows=rows,
    )
