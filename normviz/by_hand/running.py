"""BatchNorm's running statistics after some training passes over the same batch."""

from __future__ import annotations

from dataclasses import dataclass

from .norms import Array, Bools, moments


@dataclass(frozen=True)
class Running:
    """Running mean and variance [features].

    variance  as PyTorch keeps it, from the batch's unbiased variance
    biased    as Keras keeps it, from the biased one
    start     share that the start (mean 0, variance 1) still has
    seen      the batch's own mean and unbiased variance, which each pass takes in
    passes    training passes that could be made; PyTorch refuses a batch of one row
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
    """After `passes` times statistic = (1 - momentum) statistic + momentum the batch's; x is
    [rows, features], `counted` [rows]."""
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
