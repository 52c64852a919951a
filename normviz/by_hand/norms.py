"""The three norms with all intermediate values, in float64 and without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Axis = Literal["row", "column", "running"]


@dataclass(frozen=True)
class Worked:
    """A norm of x, step by step; all arrays are [rows, features].

    axis     what is averaged: each row, each column, or nothing (running statistics)
    counted  the cells that enter an average
    mean     what is subtracted: 0 for RMSNorm, which does not centre
    square   mean square of x - mean: the biased variance, or for RMSNorm the mean of x²
    divisor  sqrt(square + eps)
    hat      (x - mean) / divisor
    y        gamma hat + beta; without beta for RMSNorm
    """

    axis: Axis
    counted: Bools
    x: Array
    mean: Array
    square: Array
    divisor: Array
    hat: Array
    y: Array

    @property
    def left(self) -> Array:
        """x - mean."""
        return self.x - self.mean

    def together(self, row: int, feature: int) -> Bools:
        """[rows, features] the cells that are averaged for the cell at (row, feature), from 0."""
        line = np.zeros_like(self.counted)
        if self.axis == "row":
            line[row] = True
        elif self.axis == "column":
            line[:, feature] = True
        return line & self.counted


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> Worked:
    """LayerNorm of each row over its features. Ba et al. 2016, arXiv:1607.06450."""
    mean = x.mean(axis=1, keepdims=True)
    square = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return _worked("row", np.ones(x.shape, bool), x, mean, square, gamma, beta, eps)


def rms_norm(x: Array, gamma: Array, eps: float) -> Worked:
    """RMSNorm of each row over its features. Zhang and Sennrich 2019, arXiv:1910.07467."""
    square = (x**2).mean(axis=1, keepdims=True)
    nothing = np.zeros(1)
    return _worked("row", np.ones(x.shape, bool), x, nothing, square, gamma, nothing, eps)


def batch_norm(x: Array, counted: Bools, gamma: Array, beta: Array, eps: float) -> Worked:
    """BatchNorm in training: each feature over the counted rows [rows]. Ioffe and Szegedy 2015,
    arXiv:1502.03167. Raises ValueError if no row is counted."""
    if not counted.any():
        raise ValueError("BatchNorm has no row to average over")
    mean, square = moments(x, counted)
    cells = np.repeat(counted[:, None], x.shape[1], axis=1)
    return _worked("column", cells, x, mean, square, gamma, beta, eps)


def batch_norm_eval(
    x: Array, mean: Array, variance: Array, gamma: Array, beta: Array, eps: float
) -> Worked:
    """BatchNorm in evaluation, with the running mean and variance [features]."""
    return _worked("running", np.zeros(x.shape, bool), x, mean, variance, gamma, beta, eps)


def moments(x: Array, counted: Bools) -> tuple[Array, Array]:
    """Mean and biased variance [features] of each feature over the counted rows [rows]."""
    mean = x[counted].mean(axis=0)
    return mean, ((x[counted] - mean) ** 2).mean(axis=0)


def _worked(
    axis: Axis, counted: Bools, x: Array, mean: Array, square: Array, gamma: Array, beta: Array,
    eps: float,
) -> Worked:  # fmt: skip
    divisor = np.sqrt(square + eps)
    hat = (x - mean) / divisor
    mean, square, divisor = (np.broadcast_to(part, x.shape) for part in (mean, square, divisor))
    return Worked(axis, counted, x, mean, square, divisor, hat, gamma * hat + beta)
