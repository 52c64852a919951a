"""All three norms on an example, before and after the experiment; and one output calculated on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .example import Example, brief, shown, total
from .formulas import (
    Array,
    Bools,
    NormSteps,
    Running,
    batch_norm,
    batch_norm_eval,
    layer_norm,
    rms_norm,
    running,
)

KEYS = ("layernorm", "rmsnorm", "batchnorm")
"""Keys of the norms in the catalogue, in the order of the page."""
MOVED = 1e-3
"""Smaller changes, absolute or relative, are not marked: eps alone causes some."""


@dataclass(frozen=True)
class Batch:
    """The input of a norm, x [n, features], and the table row of each of its rows.

    rows     table rows from 1; 0 for padding
    counted  [n] the rows that BatchNorm averages over
    """

    x: Array
    rows: tuple[int, ...]
    counted: Bools

    def place(self, row: int) -> int:
        """Index in x of a table row (from 1). Raises ValueError if the batch lacks it."""
        return self.rows.index(row)


@dataclass(frozen=True)
class Work:
    """All values of an example.

    before, was  the batch as typed, and the norms (by key) of it
    after, now   the batch after the experiment, and the norms of it
    running      BatchNorm's statistics in eval, from training passes over the batch as typed. The
                 padding experiment trains on the padded batch; all others come after training.
    """

    example: Example
    before: Batch
    after: Batch
    was: dict[str, NormSteps]
    now: dict[str, NormSteps]
    running: Running

    @property
    def row(self) -> int:
        """Index of the selected row in the batch."""
        return self.after.place(self.example.row)

    @property
    def feature(self) -> int:
        """Index of the selected feature."""
        return self.example.feature - 1

    @property
    def refused(self) -> bool:
        """Whether PyTorch's BatchNorm refuses this batch: in training it needs two rows."""
        return self.example.mode == "train" and int(self.after.counted.sum()) < 2

    @property
    def edited(self) -> Bools:
        """[n, features] the inputs that the experiment changed."""
        return self._gone(self.after.x, self.before.x) > 0

    def change(self, key: str) -> Array:
        """[n, features] absolute change of each output of a norm."""
        return self._gone(self.now[key].y, self.was[key].y)

    def _gone(self, now: Array, was: Array) -> Array:
        """Absolute differences of the same rows; 0 for padding, which is only in one batch."""
        differences = np.zeros_like(now)
        for i, row in enumerate(self.after.rows):
            if row:
                differences[i] = np.abs(now[i] - was[self.before.place(row)])
        return differences

    def moved(self, key: str) -> Bools:
        """[n, features] the outputs that change by more than eps can cause."""
        return self.change(key) > MOVED * np.maximum(1.0, np.abs(self.now[key].y))


def work(example: Example) -> Work:
    """Compute every value of the three norms."""
    before = _batch(np.array(example.x, dtype=np.float64), range(1, example.rows + 1))
    after = _tried(example, before)
    plain, padded = (
        running(batch.x, batch.counted, example.passes, example.momentum)
        for batch in (before, after if example.experiment == "padding" else before)
    )
    was, now = _norms(example, before, plain), _norms(example, after, padded)
    return Work(example, before, after, was, now, padded)


def _batch(x: Array, rows: range | tuple[int, ...]) -> Batch:
    return Batch(x, tuple(rows), np.ones(len(x), bool))


def _tried(example: Example, plain: Batch) -> Batch:
    if example.experiment == "alone":
        return _batch(plain.x[[example.row - 1]], (example.row,))
    if example.experiment == "padding":
        n = example.padding
        x = np.vstack([plain.x, np.zeros((n, example.features))])
        counted = np.array([True] * len(plain.x) + [not example.masked] * n)
        return Batch(x, plain.rows + (0,) * n, counted)
    x = plain.x.copy()
    if example.experiment == "neighbour" and example.rows > 1:
        x[example.neighbour - 1, example.feature - 1] += example.amount
    elif example.experiment == "shift":
        x += example.amount
    elif example.experiment == "scale":
        x *= example.amount
    return _batch(x, plain.rows)


def _norms(example: Example, batch: Batch, stats: Running) -> dict[str, NormSteps]:
    gamma, beta, eps = np.array(example.gamma), np.array(example.beta), example.eps
    over_rows = (
        batch_norm(batch.x, batch.counted, gamma, beta, eps)
        if example.mode == "train"
        else batch_norm_eval(batch.x, stats.mean, stats.variance, gamma, beta, eps)
    )
    norms = (layer_norm(batch.x, gamma, beta, eps), rms_norm(batch.x, gamma, eps), over_rows)
    return dict(zip(KEYS, norms, strict=True))


# The calculation on paper: the numbers that are averaged, and the steps to one output.


@dataclass(frozen=True)
class SheetLine:
    """A line of the sheet: its label, its numbers, and whether it is the selected cell's."""

    name: str
    values: tuple[float, ...]
    picked: bool = False


@dataclass(frozen=True)
class Sheet:
    """The calculation for the selected cell.

    heads  column titles: x, x − μ, (x − μ)², x̂, y
    lines  one per counted cell of the same row (LayerNorm, RMSNorm) or column (BatchNorm)
    means  column index -> mean, for averaged columns; empty with running statistics
    steps  (quantity, formula with its numbers)
    """

    heads: tuple[str, ...]
    lines: tuple[SheetLine, ...]
    means: dict[int, float]
    steps: tuple[tuple[str, str], ...]


def sheet(hand_work: Work, key: str) -> Sheet:
    """The sheet of a norm, given its key."""
    done = hand_work.now[key]
    row, feature = hand_work.row, hand_work.feature
    cells = done.together(row, feature)
    if done.axis == "running":
        cells = np.zeros_like(done.counted)
        cells[:, feature] = True
    rows, features = np.nonzero(cells)
    centred, averaged = key != "rmsnorm", done.axis != "running"
    parts = {"x": done.x}
    if centred:
        parts["x − μ"] = done.left
    if averaged:
        parts["(x − μ)²" if centred else "x²"] = done.left**2
    parts |= {"x̂": done.hat, "y": done.y}
    lines = tuple(
        SheetLine(
            _name(hand_work, done, r, f), tuple(float(part[r, f]) for part in parts.values()),
            (r, f) == (row, feature),
        )
        for r, f in zip(rows.tolist(), features.tolist(), strict=True)
    )  # fmt: skip
    means: dict[int, float] = {}
    if averaged and centred:
        means = {0: float(done.mean[row, feature]), 2: float(done.square[row, feature])}
    elif averaged:
        means = {1: float(done.square[row, feature])}
    return Sheet(tuple(parts), lines, means, tuple(_steps(hand_work, key, lines)))


def _name(hand_work: Work, done: NormSteps, row: int, feature: int) -> str:
    if done.axis == "row":
        return f"feature {feature + 1}"
    number = hand_work.after.rows[row]
    return f"row {number}" if number else "padding"


def _steps(hand_work: Work, key: str, lines: Sequence[SheetLine]) -> list[tuple[str, str]]:
    done = hand_work.now[key]
    example, feature = hand_work.example, hand_work.feature
    at = (hand_work.row, feature)
    x, mean, square, divisor, hat, y = (
        float(part[at]) for part in (done.x, done.mean, done.square, done.divisor, done.hat, done.y)
    )
    gamma, beta = example.gamma[feature], example.beta[feature]
    eps = shown(example.eps)
    if key == "rmsnorm":
        steps = [("mean of x²", f"{_over([v.values[1] for v in lines])} = {brief(square)}")]
        steps += [("RMS", f"√({brief(square)} + {eps}) = {brief(divisor)}")]
    elif done.axis == "running":
        steps = _running_statistics(hand_work)
    else:
        steps = [("mean μ", f"{_over([v.values[0] for v in lines])} = {brief(mean)}")]
        squares = _over([v.values[2] for v in lines])
        steps += [("variance σ²", f"{squares} = {brief(square)}")]
    if key != "rmsnorm":
        steps += [("√(σ² + ε)", f"√({brief(square)} + {eps}) = {brief(divisor)}")]
    above = f"({total([x, -mean])})" if key != "rmsnorm" else brief(x)
    steps += [("x̂", f"{above} / {brief(divisor)} = {brief(hat)}")]
    if key == "rmsnorm":
        steps += [("y = γ x̂", f"{brief(gamma)} · {_factor(hat)} = {brief(y)}")]
    else:
        shift = f"{'−' if beta < 0 else '+'} {brief(abs(beta))}"
        steps += [("y = γ x̂ + β", f"{brief(gamma)} · {_factor(hat)} {shift} = {brief(y)}")]
    return steps


def _over(values: Sequence[float]) -> str:
    """A mean as text: (1 + 2) / 2."""
    added = total(values)
    return f"({added}) / {len(values)}" if len(values) > 1 else f"{added} / 1"


def _running_statistics(hand_work: Work) -> list[tuple[str, str]]:
    """The running statistics as weighted sums of their initial value and the batch's."""
    statistics, at = hand_work.running, hand_work.feature
    old, new = brief(statistics.start), brief(1 - statistics.start)
    mean, variance = (float(part[at]) for part in statistics.seen)
    return [
        ("running μ", f"{old} · 0 + {new} · {_factor(mean)} = {brief(float(statistics.mean[at]))}"),
        (
            "running σ²",
            f"{old} · 1 + {new} · {_factor(variance)} = {brief(float(statistics.variance[at]))}",
        ),
    ]


def _factor(value: float) -> str:
    return f"({brief(value)})" if value < 0 else brief(value)
