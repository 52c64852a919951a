"""The settings of the page: a table, gamma and beta, and an experiment on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..catalog.registry import Registry
from ..limits import Range
from .numbers import VALUES, HandError, Matrix, Row

ROWS, FEATURES = Range(1, 6, whole=True), Range(1, 8, whole=True)
RANGES = {
    "eps": Range(0, 1, above=True),
    "padding": Range(1, 4, whole=True),
    "passes": Range(0, 1000, whole=True),
    "momentum": Range(0, 1),
}
"""Ranges that are the same in every example; those of `row` and `feature` depend on the table."""
MODES = ("train", "eval")


@dataclass(frozen=True)
class Experiment:
    """An experiment: its label, and the range and default of its number, if it takes one."""

    key: str
    label: str
    takes: Range | None = None
    amount: float = 0.0


EXPERIMENTS = Registry(
    "experiment",
    (
        Experiment("none", "As it is"),
        Experiment("alone", "Batch of 1"),
        Experiment("neighbour", "Change a neighbour", Range(-1000, 1000), 5.0),
        Experiment("padding", "Padded sequence"),
        Experiment("shift", "Add to all", Range(-1000, 1000), 10.0),
        Experiment("scale", "Scale all", Range(0.001, 1000), 100.0),
    ),
)


@dataclass(frozen=True)
class Example:
    """A table of rows (tokens, or samples) by features, and an experiment on it.

    gamma, beta   one number per feature; RMSNorm has no beta
    row, feature  the selected cell, counted from 1
    experiment    key of EXPERIMENTS; `amount` is its number
    padding       rows of zeros after the sequence, in that experiment; `masked` excludes them from
                  BatchNorm's averages
    mode          BatchNorm's mode, train or eval; in eval, `passes` training passes come first
    momentum      of BatchNorm's running statistics, in PyTorch's convention

    Raises HandError with one sentence for the first value that is not allowed.
    """

    x: Matrix
    gamma: Row
    beta: Row
    eps: float = 1e-5
    row: int = 1
    feature: int = 1
    experiment: str = "none"
    amount: float = 0.0
    padding: int = 2
    masked: bool = False
    mode: str = "train"
    passes: int = 10
    momentum: float = 0.1

    def __post_init__(self) -> None:
        self._check_table()
        picks = {
            "row": Range(1, self.rows, whole=True),
            "feature": Range(1, self.features, whole=True),
        }
        for name, allowed in {**RANGES, **picks}.items():
            _check(name, getattr(self, name), allowed)
        if self.experiment not in EXPERIMENTS:
            raise HandError(EXPERIMENTS.unknown(self.experiment), "experiment")
        if takes := EXPERIMENTS[self.experiment].takes:
            _check("amount", self.amount, takes)
        if self.mode not in MODES:
            allowed = " or ".join(MODES)
            raise HandError(f"mode is {self.mode!r}, allowed is {allowed}", "mode")

    def _check_table(self) -> None:
        _check("the number of rows", self.rows, ROWS, "x")
        _check("the number of features", self.features, FEATURES, "x")
        for i, row in enumerate(self.x, 1):
            if len(row) != self.features:
                raise HandError(
                    f"row 1 has {self.features} numbers and row {i} has {len(row)}: each row needs "
                    "as many",
                    "x",
                )
        for name in ("gamma", "beta"):
            if (n := len(getattr(self, name))) != self.features:
                raise HandError(
                    f"{name} has {n} numbers for {self.features} features: it needs one for each",
                    name,
                )
        for name, values in (("x", sum(self.x, ())), ("gamma", self.gamma), ("beta", self.beta)):
            for value in values:
                _check(name, value, VALUES)

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def features(self) -> int:
        return len(self.x[0]) if self.x else 0

    @property
    def neighbour(self) -> int:
        """The row that the neighbour experiment changes: the next row, or the previous one at the end."""
        return self.row + 1 if self.row < self.rows else max(1, self.row - 1)

    def replace(self, **fields: Any) -> Example:
        """A changed copy. Raises HandError."""
        return replace(self, **fields)

    def trying(self, experiment: str) -> Example:
        """The same table with another experiment, its number at the default. Raises HandError."""
        if experiment not in EXPERIMENTS:
            raise HandError(EXPERIMENTS.unknown(experiment), "experiment")
        return self.replace(experiment=experiment, amount=EXPERIMENTS[experiment].amount)

    def holding(self, x: Matrix) -> Example:
        """Another table; gamma, beta and the selected cell are fitted to its size."""
        features = len(x[0]) if x else 0
        return self.replace(
            x=x,
            gamma=(*self.gamma, *[1.0] * features)[:features],
            beta=(*self.beta, *[0.0] * features)[:features],
            row=max(1, min(self.row, len(x))),
            feature=max(1, min(self.feature, features)),
        )

    def sized(self, rows: int, features: int) -> Example:
        """The table cut to a size, or padded with zeros."""
        wide = [(*row, *[0.0] * features)[:features] for row in self.x]
        return self.holding(tuple([*wide, *[(0.0,) * features] * rows][:rows]))


def _check(name: str, value: float, allowed: Range, field: str = "") -> None:
    fits = isinstance(value, int | float) and value in allowed
    if not fits or (allowed.whole and value != int(value)):
        raise HandError(
            f"{name} is {value!r}, allowed is {allowed.text()}",
            field or name,
            allowed.nearest(value),
        )
