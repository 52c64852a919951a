"""Numbers, times and lists as people read them. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float) -> str:
    """Three significant digits: 1.22, 904, 0.0031, 2.5e-07."""
    if not math.isfinite(value):
        return "not finite"
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e6 else text


def short(value: float) -> str:
    """Two significant digits without an exponent where people can read it: 3.7, 0.012, 2e-8."""
    if not math.isfinite(value):
        return "not finite"
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    if not value:
        return "0"
    rounded = float(f"{value:.1e}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(abs(rounded))))}f}"


def loss(value: float) -> str:
    """Two decimals from 0.01 to 100, else as `number`: 1.60, 0.0031, 904."""
    return f"{value:.2f}" if 0.01 <= value < 100 else number(value)


def ratio(value: float) -> str:
    """How many times larger, or smaller: "3,500 times", "1/2.5 times"."""
    if 0 < value < 1:
        return f"1/{short(1 / value)} times"
    return f"{short(value)} times"


def duration(seconds: float) -> str:
    """How long something takes: "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def timing(seconds: float) -> str:
    """A measured time of at most some seconds: "31 µs", "4.2 ms" or "1.3 s"."""
    if seconds < 1e-3:
        return f"{1e6 * seconds:.3g} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def megabytes(count: int) -> str:
    """Bytes as "1.3 MB"."""
    return f"{count / 1e6:.3g} MB"


def listed(names: Sequence[str]) -> str:
    """At least one name, as "A", "A and B" or "A, B and C"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
