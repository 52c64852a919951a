"""What the terminal and the page say of claims in the same words."""

from __future__ import annotations

from .record import Claim
from .stored import Result

ORDER = ("contradicted", "holds only where", "not distinguishable", "holds", "not run")
"""Of verdicts, negative and surprising results first."""

NOT_RUN = ORDER[-1]


def chip(claim: Claim, result: Result | None) -> str:
    """The kind of its verdict."""
    return NOT_RUN if result is None else result.verdict(claim).kind


def duration(seconds: float) -> str:
    """ "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
