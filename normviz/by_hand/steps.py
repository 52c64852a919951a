"""The calculation on paper: the numbers that are averaged, and the steps to one output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .norms import Worked
from .numbers import brief, shown, total
from .work import Work


@dataclass(frozen=True)
class Line:
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
    lines: tuple[Line, ...]
    means: dict[int, float]
    steps: tuple[tuple[str, str], ...]


def sheet(it: Work, key: str) -> Sheet:
    """The sheet of a norm, given its key."""
    done = it.now[key]
    row, feature = it.row, it.feature
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
        Line(
            _name(it, done, r, f), tuple(float(part[r, f]) for part in parts.values()),
            (r, f) == (row, feature),
        )
        for r, f in zip(rows.tolist(), features.tolist(), strict=True)
    )  # fmt: skip
    means: dict[int, float] = {}
    if averaged and centred:
        means = {0: float(done.mean[row, feature]), 2: float(done.square[row, feature])}
    elif averaged:
        means = {1: float(done.square[row, feature])}
    return Sheet(tuple(parts), lines, means, tuple(_steps(it, key, lines)))


def _name(it: Work, done: Worked, row: int, feature: int) -> str:
    if done.axis == "row":
        return f"feature {feature + 1}"
    number = it.after.rows[row]
    return f"row {number}" if number else "padding"


def _steps(it: Work, key: str, lines: Sequence[Line]) -> list[tuple[str, str]]:
    done = it.now[key]
    at = (it.row, it.feature)
    x, mean, square, divisor, hat, y = (
        float(part[at]) for part in (done.x, done.mean, done.square, done.divisor, done.hat, done.y)
    )
    gamma, beta = it.example.gamma[it.feature], it.example.beta[it.feature]
    eps = shown(it.example.eps)
    if key == "rmsnorm":
        found = [("mean of x²", f"{_over([v.values[1] for v in lines])} = {brief(square)}")]
        found += [("RMS", f"√({brief(square)} + {eps}) = {brief(divisor)}")]
    elif done.axis == "running":
        found = _kept(it)
    else:
        found = [("mean μ", f"{_over([v.values[0] for v in lines])} = {brief(mean)}")]
        squares = _over([v.values[2] for v in lines])
        found += [("variance σ²", f"{squares} = {brief(square)}")]
    if key != "rmsnorm":
        found += [("√(σ² + ε)", f"√({brief(square)} + {eps}) = {brief(divisor)}")]
    above = f"({total([x, -mean])})" if key != "rmsnorm" else brief(x)
    found += [("x̂", f"{above} / {brief(divisor)} = {brief(hat)}")]
    if key == "rmsnorm":
        found += [("y = γ x̂", f"{brief(gamma)} · {_factor(hat)} = {brief(y)}")]
    else:
        shift = f"{'−' if beta < 0 else '+'} {brief(abs(beta))}"
        found += [("y = γ x̂ + β", f"{brief(gamma)} · {_factor(hat)} {shift} = {brief(y)}")]
    return found


def _over(values: Sequence[float]) -> str:
    """A mean as text: (1 + 2) / 2."""
    said = total(values)
    return f"({said}) / {len(values)}" if len(values) > 1 else f"{said} / 1"


def _kept(it: Work) -> list[tuple[str, str]]:
    """The running statistics as weighted sums of their initial value and the batch's."""
    kept, at = it.running, it.feature
    old, new = brief(kept.start), brief(1 - kept.start)
    mean, variance = (float(part[at]) for part in kept.seen)
    return [
        ("running μ", f"{old} · 0 + {new} · {_factor(mean)} = {brief(float(kept.mean[at]))}"),
        (
            "running σ²",
            f"{old} · 1 + {new} · {_factor(variance)} = {brief(float(kept.variance[at]))}",
        ),
    ]


def _factor(value: float) -> str:
    return f"({brief(value)})" if value < 0 else brief(value)
