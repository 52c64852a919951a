"""Numbers as people write and read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from ..limits import Range

VALUES = Range(-1e6, 1e6)
Row = tuple[float, ...]
Matrix = tuple[Row, ...]


class HandError(ValueError):
    """One sentence: what was given, what is allowed. `field` is the setting it is about, `nearest`
    the closest number that is allowed there, if there is one."""

    def __init__(self, sentence: str, field: str = "", nearest: float | None = None) -> None:
        super().__init__(sentence)
        self.field = field
        self.nearest = nearest


def number(text: str, where: str, allowed: Range = VALUES) -> float:
    """A number as typed: 3, -1.5, 1e-3, also with a decimal comma or a real minus sign.

    Raises HandError, which names `where` it stands.
    """
    plain = text.strip().replace("−", "-")
    if not plain:
        raise HandError(f"{where} is empty: write {allowed.text()}")
    try:
        value = float(plain.replace(",", "."))
    except ValueError:
        raise HandError(f"{where} is {_cut(text)}: write {allowed.text()}") from None
    if not isfinite(value) or value not in allowed:
        raise HandError(
            f"{where} is {_cut(text)}, allowed is {allowed.text()}", where, allowed.nearest(value)
        )
    return value


def matrix(text: str) -> Matrix:
    """Rows of numbers from pasted text; raises HandError with a sentence.

    A new line or a semicolon ends a row. Commas and spaces part its numbers; where there are tabs,
    as a spreadsheet writes them, only tabs do, and a comma is a decimal comma. Brackets are ignored,
    so what NumPy prints can be pasted.
    """
    bare = re.sub(r"\]\s*,", "\n", text).replace("[", " ").replace("]", " ")
    lines = [line for line in re.split(r"[;\n]", bare) if line.strip(" ,\t")]
    if not lines:
        raise HandError("there is no number in it: write each row on a line, as in 1, 2, 3")
    return tuple(_row(line, i) for i, line in enumerate(lines, 1))


def _row(line: str, row: int) -> Row:
    words = (
        line.strip().split("\t") if "\t" in line.strip() else re.split(r"[,\s]+", line.strip(" ,"))
    )
    return tuple(number(word, f"row {row}, feature {i}") for i, word in enumerate(words, 1))


NOISE = 1e-13
"""What is smaller is what rounding left of a zero."""


def brief(value: float, digits: int = 4) -> str:
    """So many significant digits with a real minus sign: 3, −0.7071, 1.2e6, 1e−5; noise is 0."""
    return "0" if abs(value) < NOISE else shown(value, digits)


def shown(value: float, digits: int = 4) -> str:
    """The same for a number that was set, however small."""
    text = re.sub(r"e([+-])0*", r"e\1", f"{value:.{digits}g}").replace("e+", "e")
    return text.replace("-", "−")


def written(value: float) -> str:
    """The exact value, as short as it can be typed: 3, -0.1, 1e-05."""
    return repr(value).removesuffix(".0")


def total(values: Sequence[float]) -> str:
    """A sum: 1 − 2 + 3."""
    first, *rest = values
    return brief(first) + "".join(f" {'−' if v < 0 else '+'} {brief(abs(v))}" for v in rest)


def _cut(text: str) -> str:
    return repr(text if len(text) <= 24 else f"{text[:24]}…")
