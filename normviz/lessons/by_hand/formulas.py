"""LayerNorm, RMSNorm and BatchNorm with all intermediate values, in float64 and without torch.

Includes BatchNorm's running statistics, and the words that mean different things in PyTorch and Keras.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .example import Example, brief

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Axis = Literal["row", "column", "running"]


@dataclass(frozen=True)
class NormSteps:
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


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> NormSteps:
    """LayerNorm of each row over its features. Ba et al. 2016, arXiv:1607.06450."""
    mean = x.mean(axis=1, keepdims=True)
    square = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return _worked("row", np.ones(x.shape, bool), x, mean, square, gamma, beta, eps)


def rms_norm(x: Array, gamma: Array, eps: float) -> NormSteps:
    """RMSNorm of each row over its features. Zhang and Sennrich 2019, arXiv:1910.07467."""
    square = (x**2).mean(axis=1, keepdims=True)
    nothing = np.zeros(1)
    return _worked("row", np.ones(x.shape, bool), x, nothing, square, gamma, nothing, eps)


def batch_norm(x: Array, counted: Bools, gamma: Array, beta: Array, eps: float) -> NormSteps:
    """BatchNorm in training: each feature over the counted rows [rows]. Ioffe and Szegedy 2015,
    arXiv:1502.03167. Raises ValueError if no row is counted."""
    if not counted.any():
        raise ValueError("BatchNorm has no row to average over")
    mean, square = moments(x, counted)
    cells = np.repeat(counted[:, None], x.shape[1], axis=1)
    return _worked("column", cells, x, mean, square, gamma, beta, eps)


def batch_norm_eval(
    x: Array, mean: Array, variance: Array, gamma: Array, beta: Array, eps: float
) -> NormSteps:
    """BatchNorm in evaluation, with the running mean and variance [features]."""
    return _worked("running", np.zeros(x.shape, bool), x, mean, variance, gamma, beta, eps)


def moments(x: Array, counted: Bools) -> tuple[Array, Array]:
    """Mean and biased variance [features] of each feature over the counted rows [rows]."""
    mean = x[counted].mean(axis=0)
    return mean, ((x[counted] - mean) ** 2).mean(axis=0)


def _worked(
    axis: Axis, counted: Bools, x: Array, mean: Array, square: Array, gamma: Array, beta: Array,
    eps: float,
) -> NormSteps:  # fmt: skip
    divisor = np.sqrt(square + eps)
    hat = (x - mean) / divisor
    mean, square, divisor = (np.broadcast_to(part, x.shape) for part in (mean, square, divisor))
    return NormSteps(axis, counted, x, mean, square, divisor, hat, gamma * hat + beta)


# BatchNorm's running statistics after training passes over one batch.


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


# Conventions of PyTorch and Keras.

TORCH_EPS = {"layernorm": 1e-5, "rmsnorm": None, "batchnorm": 1e-5}
"""Defaults of torch.nn; None is the machine epsilon of the tensor's dtype."""
KERAS_EPS = {"layernorm": 1e-3, "rmsnorm": 1e-6, "batchnorm": 1e-3}
"""Defaults of keras.layers 3."""
TORCH_MOMENTUM, KERAS_MOMENTUM = 0.1, 0.99


def keras_momentum(momentum: float) -> float:
    """Keras' momentum is the share of the old value, PyTorch's that of the new: 0.1 becomes 0.9."""
    return round(1 - momentum, 15)


def table(example: Example) -> tuple[tuple[str, str, str], ...]:
    """Rows of (property, in PyTorch, in Keras)."""
    of_torch = ", ".join("of the dtype" if v is None else brief(v) for v in TORCH_EPS.values())
    of_keras = ", ".join(brief(v) for v in KERAS_EPS.values())
    return (
        ("Default ε: LayerNorm, RMSNorm, BatchNorm", of_torch, of_keras),
        (
            "Momentum is the share of",
            f"the new batch: {brief(example.momentum)} (default {brief(TORCH_MOMENTUM)})",
            f"the old value: {brief(keras_momentum(example.momentum))} "
            f"(default {brief(KERAS_MOMENTUM)})",
        ),
        ("Running variance takes in the", "unbiased variance, / (n − 1)", "biased variance, / n"),
        ("Training on one row", "raises ValueError", "gives β"),
        ("Features are", "of BatchNorm1d: axis 1", "the last axis, axis=-1"),
        ("Padding is left out by", "indexing: norm(x[real])", "a mask: norm(x, mask=real)"),
    )
