"""A measurement as stored: a JSON object of ratios, seconds and counts, with its setting."""

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

    seconds     per call, median of the rounds
    ratio       to LayerNorm in the same round
    kernels, bytes  that a call starts, and reads and writes; see `counts`
    operations  per number of the norm's own formula, for the norm alone; else 0
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

    when     its end, ISO 8601, UTC
    load     average load of the minute before, in processes; None if the system does not report it
    """

    setting: Setting
    when: str
    machine: str
    load: float | None
    torch: str
    rounds: int
    rows: tuple[Row, ...]

    def rows_of(self, context: str, passes: str = "") -> Iterator[Row]:
        """Rows of a context in the order of the variants; of all passes if none is named."""
        found = [r for r in self.rows if r.context == context and passes in ("", r.passes)]
        yield from sorted(found, key=lambda row: VARIANTS.keys().index(row.variant))

    def row(self, variant: str, context: str, passes: str = BOTH) -> Row:
        """One row. Raises KeyError if it was not measured."""
        for row in self.rows:
            if (row.variant, row.context, row.passes) == (variant, context, passes):
                return row
        raise KeyError((variant, context, passes))

    def noise(self, context: str, passes: str = BOTH) -> Ratio:
        """LayerNorm's ratio to itself here, the measurement error; its interval always contains 1."""
        it = self.row(CONTROL, context, passes).ratio
        return Ratio(it.median, min(it.low, 1.0), max(it.high, 1.0))

    def differs(self, row: Row) -> bool:
        """Whether a row differs from LayerNorm: its interval excludes 1 and does not overlap the
        interval of LayerNorm against itself."""
        return not row.ratio.overlaps(self.noise(row.context, row.passes))

    @property
    def day(self) -> str:
        """The date, as in "21 Nov 2026"."""
        return f"{datetime.fromisoformat(self.when):%d %b %Y}".lstrip("0")

    def text(self) -> str:
        """The setting, machine and date in words."""
        return f"{self.setting.text()} ({self.machine}), {self.day}"


ADAPTER: TypeAdapter[Measurement] = TypeAdapter(Measurement)
