"""Domains that hardly ever change: a chart whose domain changes is rebuilt in the browser.

A domain covers everything recorded so far in whole decades and only ever grows while a run goes
on, so it changes a few times at most. All charts of a quantity share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from normviz.catalog.probes import ProbeRecord
from normviz.runs.recording import LayerValues

Floats = NDArray[np.float64]

# How many decades beyond the record's own domain an axis may reach. The last step before a
# divergence can be 1e30: shown at the axis' end, it does not flatten everything else.
REACH_DOWN, REACH_UP = 6, 3
STRIDE = 3
MARGIN = 1.1  # the smallest value is clear of the axis


@dataclass(frozen=True)
class Domain:
    """The range of a value axis, and what lies outside it.

    lo, hi   ends of the axis, in the probe's unit
    scale    "log" (whole decades) or "linear"
    below    True where positive values lie under `lo`; above: the same over `hi`
    zeros    True where values are zero or (by rounding) negative, which a log axis cannot hold
    broken   True where values are not finite
    """

    lo: float
    hi: float
    scale: Literal["log", "linear"] = "log"
    below: bool = False
    above: bool = False
    zeros: bool = False
    broken: bool = False

    def ticks(self, most: int = 6) -> list[float]:
        """At most `most` + 1 values to label: whole decades, or even steps on a linear axis."""
        if self.scale == "linear":
            return [float(v) for v in np.linspace(self.lo, self.hi, 5)]
        first, last = round(log10(self.lo)), round(log10(self.hi))
        stride = ceil((last - first) / most)
        # Where values lie beyond the upper end, its tick says so: count from there.
        exponents = (
            range(last, first - 1, -stride) if self.above else range(first, last + 1, stride)
        )
        labelled = {*exponents, *([first] if self.below else [])}
        return [10.0**e for e in sorted(labelled)]

    def place(self, values: Floats) -> Floats:
        """Share of the way from `lo` (0) to `hi` (1), clamped; NaN where `values` is not finite.

        A value of zero or less is at 0 on a log axis.
        """
        if self.scale == "linear":
            share = (values - self.lo) / (self.hi - self.lo)
        else:
            with np.errstate(invalid="ignore"):
                inside = np.where(values > 0, np.maximum(values, self.lo), self.lo)
            share = (np.log10(inside) - log10(self.lo)) / (log10(self.hi) - log10(self.lo))
        return np.where(np.isfinite(values), np.clip(share, 0.0, 1.0), np.nan)

    def zero(self, values: Floats) -> NDArray[np.bool_]:
        """Where `values` have no place on this axis because they are zero or less."""
        return np.isfinite(values) & (values <= 0) & (self.scale == "log")


def quantised_domain(
    record: ProbeRecord,
    layers: Sequence[LayerValues],
    live: bool = False,
    reach_up: int = REACH_UP,
    linear: bool = False,
) -> Domain:
    """The axis for everything recorded so far in all lanes; the record's own while nothing is.

    `live` keeps the record's own domain in it until the run has ended: otherwise a gradient that
    falls by five decades would rebuild the charts five times. Beyond that it grows by STRIDE
    decades at once, for the same reason. Either way it only ever grows.
    Log: whole decades, at most REACH_DOWN and `reach_up` beyond the record's. Linear: the record's
    domain, longer by whole quarters of itself where values lie outside. `linear` shows a quantity
    with a log axis on a linear one, from zero to the next 1, 2 or 5.
    """
    parts = [lane.drawn.ravel() for lane in layers]
    values = np.concatenate(parts) if parts else np.empty(0)
    finite = values[np.isfinite(values)]
    broken = len(finite) < len(values)
    if record.scale == "linear":
        return _linear(record, finite, broken)
    if linear:
        return _from_zero(finite, broken)
    positive = finite[finite > 0]
    zeros = len(positive) < len(finite)
    low, high = record.domain
    if len(positive) == 0:
        return Domain(low, high, zeros=zeros, broken=broken)
    least, most = float(positive.min()), float(positive.max())
    first, last = round(log10(low)), round(log10(high))
    bottom, top = floor(log10(least / MARGIN)), ceil(log10(most))
    if live:
        bottom = first - STRIDE * max(0, ceil((first - bottom) / STRIDE))
        top = last + STRIDE * max(0, ceil((top - last) / STRIDE))
    bottom = min(max(bottom, first - REACH_DOWN), last + reach_up - 1)
    top = max(min(top, last + reach_up), bottom + 1)
    lo, hi = 10.0**bottom, 10.0**top
    return Domain(lo, hi, "log", least < lo, most > hi, zeros, broken)


def _from_zero(finite: Floats, broken: bool) -> Domain:
    most = float(finite.max(initial=0.0))
    decade = 10.0 ** floor(log10(most)) if most > 0 else 1.0
    hi = next((d * decade for d in (1, 2, 5) if d * decade >= most), 10 * decade)
    return Domain(0.0, hi, "linear", broken=broken)


def _linear(record: ProbeRecord, finite: Floats, broken: bool) -> Domain:
    low, high = record.domain
    if len(finite) == 0:
        return Domain(low, high, "linear", broken=broken)
    quarter = (high - low) / 4
    lo = low - quarter * max(0, ceil((low - float(finite.min())) / quarter))
    hi = high + quarter * max(0, ceil((float(finite.max()) - high) / quarter))
    return Domain(lo, hi, "linear", broken=broken)
