"""The setting of a measurement, and the measurement as it is stored in JSON: ratios, seconds and counts.

A ratio is a median with its confidence interval. The machine is described in generic words that do not
identify its owner.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from math import comb

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from ...catalog.setting import Range
from ...config import ConfigError, RunConfig, estimated_gib
from ...cores import cores
from ...limits import MAX_GIB
from .variants import BOTH, CONTROL, VARIANTS

# The setting: width, tokens, threads, device, and seconds to spend.

HEAD = 32
"""Channels of an attention head."""
SEQ_LEN = 64
DEPTH = 2
WIDTHS = Range(32, 1024, whole=True)
TOKENS = Range(64, 16_384, whole=True)
SECONDS = Range(1, 300)
DEVICES = ("cpu", "cuda")

MIN_ROUNDS, MAX_ROUNDS = 8, 60
"""Fewer rounds give too wide an interval; in more rounds the machine itself drifts."""


@dataclass(frozen=True)
class CostSetting:
    """Width (numbers per token), tokens per batch, CPU threads, device, and seconds to spend.

    Raises ValueError with a sentence for a value that is not allowed.
    """

    width: int = 128
    tokens: int = 512
    threads: int = 1
    device: str = "cpu"
    seconds: float = 15.0

    def __post_init__(self) -> None:
        _check("width", self.width, WIDTHS, HEAD)
        _check("tokens", self.tokens, TOKENS, SEQ_LEN)
        _check("threads", self.threads, Range(1, cores(), whole=True))
        _check("seconds", self.seconds, SECONDS)
        if self.device not in DEVICES:
            raise ValueError(f"device is {self.device[:40]!r}, allowed are {' and '.join(DEVICES)}")
        try:
            self.config()
        except ConfigError:
            raise ValueError(
                f"width {self.width} with {self.tokens:,} tokens is more than a run may take here: lower "
                "width or tokens"
            ) from None
        if self.needed_gib > MAX_GIB:
            raise ValueError(
                f"width {self.width} with {self.tokens:,} tokens would need about "
                f"{self.needed_gib:.1f} GiB of memory and at most {MAX_GIB:g} are allowed: lower "
                "width or tokens"
            )

    def config(self) -> RunConfig:
        """The model and training step that contain the norms.

        It uses PyTorch's initialisation and a learning rate near zero: every step does the same
        arithmetic, and none overflows without a norm.
        """
        return RunConfig(
            scheme="pre", norm="layernorm", init="torch", depth=DEPTH, width=self.width,
            heads=self.width // HEAD, seq_len=SEQ_LEN, batch=self.tokens // SEQ_LEN, lr=1e-6, steps=1,
            device=self.device,
        )  # fmt: skip

    @property
    def needed_gib(self) -> float:
        """Estimated memory in GiB; every variant has its own model."""
        return len(VARIANTS) * estimated_gib(self.config())

    def text(self) -> str:
        """In words: "width 128, 512 tokens, 1 thread, CPU"."""
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        return f"width {self.width}, {self.tokens:,} tokens, {threads}, {self.device.upper()}"


def _check(name: str, value: float, allowed: Range, multiple: int = 1) -> None:
    if isinstance(value, bool) or value not in allowed or (allowed.whole and value % multiple):
        text = allowed.text()
        if multiple > 1:
            text = f"a multiple of {multiple} from {allowed.low:g} to {allowed.high:g}"
        raise ValueError(f"{name} is {value!r}, allowed is {text}")


# The median of paired ratios, and its confidence interval.

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """Median of paired ratios, and an interval that contains the true median with 95 % confidence."""

    median: float
    low: float
    high: float

    def overlaps(self, other: Ratio) -> bool:
        """Whether the two intervals have a common point."""
        return self.low <= other.high and other.low <= self.high


def ratio(seconds: NDArray[np.float64], reference: NDArray[np.float64]) -> Ratio:
    """Ratio of two series of the same rounds, [n] each, n at least 6.

    Both ends of the interval are sample ratios: the number of draws below the median is binomial,
    whatever the distribution. Raises ValueError for too few rounds.
    """
    values = np.sort(seconds / reference)
    rank = outer_rank(len(values))
    return Ratio(float(np.median(values)), float(values[rank - 1]), float(values[-rank]))


def outer_rank(n: int) -> int:
    """Rank, from 1 and from either end, of the ends of the 95 % interval for a median of n numbers."""
    tail, rank = 0.0, 0
    while (tail := tail + comb(n, rank) / 2**n) <= (1 - CONFIDENCE) / 2:
        rank += 1
    if rank == 0:
        raise ValueError(f"{n} rounds give no 95 % interval, at least 6 are needed")
    return rank


# The measurement.


@dataclass(frozen=True)
class Counts:
    """The work of a call.

    kernels     operations that start a kernel; views and bare allocations start none
    bytes       read and written by each kernel, assuming no cache
    operations  elementary operations of the written-out formula. Each counts as many as its largest
                tensor has numbers: x * y one per number, a sum one per number, also a tanh
    """

    kernels: int = 0
    bytes: int = 0
    operations: int = 0


@dataclass(frozen=True)
class Row:
    """One variant in one context.

    seconds     per call, median of the rounds
    ratio       to LayerNorm in the same round
    kernels, bytes  that a call starts, and reads and writes; see `Counts`
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

    setting: CostSetting
    when: str
    machine: str
    load: float | None
    torch: str
    rounds: int
    rows: tuple[Row, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that were measured, in order."""
        measured = {row.variant for row in self.rows}
        return tuple(variant.key for variant in VARIANTS if variant.key in measured)

    def rows_of(self, context: str, passes: str = "") -> Iterator[Row]:
        """Rows of a context in the order of the variants; of all passes if none is named."""
        rows = [r for r in self.rows if r.context == context and passes in ("", r.passes)]
        yield from sorted(rows, key=lambda row: VARIANTS.keys().index(row.variant))

    def row(self, variant: str, context: str, passes: str = BOTH) -> Row:
        """One row. Raises KeyError if it was not measured."""
        for row in self.rows:
            if (row.variant, row.context, row.passes) == (variant, context, passes):
                return row
        raise KeyError((variant, context, passes))

    def noise(self, context: str, passes: str = BOTH) -> Ratio:
        """LayerNorm's ratio to itself here, the measurement error; its interval always contains 1."""
        control = self.row(CONTROL, context, passes).ratio
        return Ratio(control.median, min(control.low, 1.0), max(control.high, 1.0))

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


# The machine.


def describe(gpu: str = "") -> str:
    """For example "2 cores, x86_64, Linux", preceded by the GPU's name if one was used."""
    n = cores()
    parts = [f"{n} core{'s' * (n > 1)}", platform.machine() or "unknown", platform.system()]
    return ", ".join(filter(None, (gpu, *parts)))


def load() -> float | None:
    """Average load of the last minute, in processes; None if the system does not report it."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
