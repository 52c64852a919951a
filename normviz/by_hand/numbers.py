"""Reading and writing numbers as people type them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from ..limits import Range

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
