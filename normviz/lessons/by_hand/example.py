"""An example of the By hand page: a table, gamma and beta, and an experiment on them; and the example tables.

Numbers are read and written here as people type them. HandError says what is wrong with one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from ...catalog.registry import Registry
from ...catalog.setting import Range

# Numbers as people type them.

VALUES = Range(-1e6, 1e6)
Row = tuple[float, ...]
Matrix = tuple[Row, ...]


class HandError(ValueError):
    """One sentence: the value given and what is allowed. `field` is the setting it is about, `nearest`
    the closest allowed number, if there is one."""

    def __init__(self, sentence: str, field: str = "", nearest: float | None = None) -> None:
        super().__init__(sentence)
        self.field = field
        self.nearest = nearest


THOUSANDS = re.compile(
    r"[-+]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+,\d*)([eE][-+]?\d+)?", re.ASCII
)
"""A number in which commas or points may separate thousands: 1,000 and 1,000.5, or 1.000,5."""
GROUPED = re.compile(r"[-+]?\d[\d\s.,'’]*")
"""Digits with separators of thousands or decimals somewhere."""
AMBIGUOUS = "in which a comma or a point may separate thousands"
PLAINLY = "write it with a decimal point and no separator between thousands, as in 1000.5"


def number(text: str, where: str, allowed: Range = VALUES) -> float:
    """Parse a typed number: 3, -1.5, 1e-3; a decimal comma and the Unicode minus are fine.

    Raises HandError, which names the place `where`; also for 1,000, where the comma is ambiguous.
    """
    plain = text.strip().replace("−", "-")
    if not plain:
        raise HandError(f"{where} is empty: write {allowed.text()}")
    if THOUSANDS.fullmatch(plain):
        raise HandError(f"{where} is {_cut(text)}, {AMBIGUOUS}: {PLAINLY}")
    try:
        value = float(plain.replace(",", "."))
    except ValueError:
        how = PLAINLY if GROUPED.fullmatch(plain) else f"write {allowed.text()}"
        raise HandError(f"{where} is {_cut(text)}: {how}") from None
    if not isfinite(value) or value not in allowed:
        raise HandError(
            f"{where} is {_cut(text)}, allowed is {allowed.text()}", where, allowed.nearest(value)
        )
    return value


def matrix(text: str) -> Matrix:
    """Parse pasted rows of numbers. Raises HandError with a sentence.

    A new line or a semicolon ends a row; commas and spaces separate numbers. If the text has tabs, as
    from a spreadsheet, only tabs separate and a comma is a decimal comma. Brackets are ignored, so the
    output of NumPy can be pasted. An ambiguous row is refused.
    """
    bare = re.sub(r"\]\s*,", "\n", text).replace("[", " ").replace("]", " ")
    lines = [line for line in re.split(r"[;\n]", bare) if line.strip(" ,\t")]
    if not lines:
        raise HandError("there is no number in it: write each row on a line, as in 1, 2, 3")
    return tuple(_row(line, i) for i, line in enumerate(lines, 1))


def _row(line: str, row: int) -> Row:
    if "\t" in line.strip():
        words = line.strip().split("\t")
    else:
        _check_commas(line.strip(" ,").replace("−", "-"), row)
        words = re.split(
            r"[,\s]+", line.strip(" ,"), flags=re.ASCII
        )  # 1 000 may have a no-break space
    return tuple(number(word, f"row {row}, feature {i}") for i, word in enumerate(words, 1))


def _check_commas(line: str, row: int) -> None:
    """Raise HandError if a comma, a point or a space may be inside a number."""
    words = re.split(r",?\s+", line, flags=re.ASCII)
    mixed = re.search(r"\d,[-+]?[\d.]", line) and re.search(r"[^\s,]\s+[^\s,]", line)
    if mixed or any(map(THOUSANDS.fullmatch, words)) or re.search(r"[\d][,\s][ ]*0\d", line):
        raise HandError(
            f"row {row} is {_cut(line)}, in which a comma, a point or a space may be within a number: "
            "write its numbers with a decimal point and no separator between thousands, and a comma "
            "and a space between two numbers, as in 1000.5, 2"
        )


NOISE = 1e-13
"""Smaller values are rounding errors of zero."""


def brief(value: float, digits: int = 4) -> str:
    """The number in `digits` significant digits: 3, −0.7071, 1.2e6, 1e−5. A rounding error gives 0."""
    return "0" if abs(value) < NOISE else shown(value, digits)


def shown(value: float, digits: int = 4) -> str:
    """Like `brief`, for a number that was set: however small, it is not rounded to 0."""
    text = re.sub(r"e([+-])0*", r"e\1", f"{value:.{digits}g}").replace("e+", "e")
    return text.replace("-", "−")


def written(value: float) -> str:
    """The exact value in its shortest form: 3, -0.1, 1e-05."""
    return repr(value).removesuffix(".0")


def total(values: Sequence[float]) -> str:
    """A sum as text: 1 − 2 + 3."""
    first, *rest = values
    return brief(first) + "".join(f" {'−' if v < 0 else '+'} {brief(abs(v))}" for v in rest)


def _cut(text: str) -> str:
    return repr(text if len(text) <= 24 else f"{text[:24]}…")


# The settings of the page.

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
        """The number of rows."""
        return len(self.x)

    @property
    def features(self) -> int:
        """The number of features."""
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


# Example tables.


@dataclass(frozen=True)
class ExamplePreset:
    """A table and the cell that is selected at first."""

    key: str
    label: str
    x: Matrix
    row: int = 1
    feature: int = 1

    def example(self) -> Example:
        """The table with gamma 1, beta 0 and no experiment."""
        features = len(self.x[0])
        return Example(
            self.x, (1.0,) * features, (0.0,) * features, row=self.row, feature=self.feature
        )


USUAL: Matrix = ((1, 2, 3, 6), (2, 0, -1, 3), (4, 4, 2, -2), (1, -2, 0, 5))

PRESETS = Registry(
    "preset",
    (
        ExamplePreset("usual", "Four rows", USUAL, 1, 4),
        ExamplePreset("outlier", "One outlier", (USUAL[0], (2, 0, 60, 3), *USUAL[2:]), 2, 3),
        ExamplePreset("constant", "Constant row", (USUAL[0], (5, 5, 5, 5), *USUAL[2:]), 2, 1),
        ExamplePreset("sample", "One sample", USUAL[:1], 1, 4),
        ExamplePreset(
            "shifted", "Rows shifted by 10", tuple(tuple(v + 10 for v in r) for r in USUAL), 1, 4
        ),
        ExamplePreset(
            "scaled", "Rows scaled by 100", tuple(tuple(v * 100 for v in r) for r in USUAL), 1, 4
        ),
        ExamplePreset(
            "large",
            "Six by eight",
            (
                (1, 2, 3, 6, 0, -1, 4, 1),
                (2, 0, -1, 3, 5, 2, -3, 0),
                (4, 4, 2, -2, 1, 0, 1, 6),
                (1, -2, 0, 5, 2, 3, -4, 3),
                (0, 1, -5, 2, 7, 1, 2, 0),
                (3, 3, 1, 0, -1, -2, 6, 2),
            ),
            3,
            4,
        ),
    ),
)
