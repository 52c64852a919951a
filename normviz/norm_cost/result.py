"""What was measured, as it is kept: a JSON object of ratios, seconds and counts, with how it was made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter

from .paired import Ratio
from .setting import Setting
from .variants import BOTH, CONTROL, VARIANTS


@dataclass(frozen=True)
class Counts:
    """Kernels started, bytes read and written, and elementary operations."""

    kernels: int = 0
    bytes: int = 0
    operations: int = 0


@dataclass(frozen=True)
class Row:
    """One variant in one context.

    seconds     of a call, median of the rounds
    ratio       to LayerNorm in the same round
    kernels, bytes  that a call makes PyTorch start, and read and write (`counts` says how counted)
    operations  a number of the norm's own formula, for the norm alone; else 0
    """

    variant: str
    context: str
    passes: str
    seconds: float
    ratio: Ratio
    kernels: int
    bytes: int
    operations: float


@dataclass(frozen=True)
class Round:
    """So many rounds are done, of how many; and about how many seconds are left."""

    done: int
    total: int
    left: float


@dataclass(frozen=True)
class Measurement:
    """All rows of one measurement.

    when     it ended, ISO 8601, UTC
    load     processes that wanted a core in the minute before, on average; None where nobody counts
    """

    setting: Setting
    when: str
    machine: str
    load: float | None
    torch: str
    rounds: int
    rows: tuple[Row, ...]

    def rows_of(self, context: str, passes: str = "") -> Iterator[Row]:
        """In the order of the variants; of all passes where none is named."""
        found = [r for r in self.rows if r.context == context and passes in ("", r.passes)]
        yield from sorted(found, key=lambda row: VARIANTS.keys().index(row.variant))

    def row(self, variant: str, context: str, passes: str = BOTH) -> Row:
        """One row. Raises KeyError where it was not measured."""
        for row in self.rows:
            if (row.variant, row.context, row.passes) == (variant, context, passes):
                return row
        raise KeyError((variant, context, passes))

    def noise(self, context: str, passes: str = BOTH) -> Ratio:
        """By what LayerNorm differs from itself here; always holds 1."""
        it = self.row(CONTROL, context, passes).ratio
        return Ratio(it.median, min(it.low, 1.0), max(it.high, 1.0))

    def differs(self, row: Row) -> bool:
        """Whether a row is told apart from LayerNorm: its interval leaves out 1, and all of the
        interval that LayerNorm has beside itself."""
        return not row.ratio.overlaps(self.noise(row.context, row.passes))

    @property
    def day(self) -> str:
        """ "21 Nov 2026"."""
        return f"{datetime.fromisoformat(self.when):%d %b %Y}".lstrip("0")

    def text(self) -> str:
        """What it was measured with, in words."""
        return f"{self.setting.text()} ({self.machine}), {self.day}"


ADAPTER: TypeAdapter[Measurement] = TypeAdapter(Measurement)
