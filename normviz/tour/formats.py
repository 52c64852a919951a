"""Numbers of runs as a story writes them."""

from __future__ import annotations

import math


def loss(value: float) -> str:
    """A loss as the lanes print it: 1.19."""
    return f"{value:.2f}"


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


def ratio(value: float) -> str:
    """How many times larger, or smaller: "3,500 times", "1/2.5 times"."""
    if 0 < value < 1:
        return f"1/{short(1 / value)} times"
    return f"{short(value)} times"
