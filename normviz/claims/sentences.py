"""Words about claims that the terminal and the page share."""

from __future__ import annotations

from .record import Claim
from .stored import ClaimResult

ORDER = ("contradicted", "holds in part", "not distinguishable", "holds", "not run")
"""Verdicts in the order of a listing, negative and surprising results first."""

NOT_RUN = ORDER[-1]


def chip(claim: Claim, result: ClaimResult | None) -> str:
    """The kind of the claim's verdict."""
    return NOT_RUN if result is None else result.verdict(claim).kind


LOAD_SECONDS = 5.0
"""Seconds until a process has imported PyTorch."""
RUN_SECONDS = 0.1
"""Seconds per run in addition to its steps, to build its model."""


def expected(claim: Claim, result: ClaimResult | None, seeds: int | None, processes: int) -> float:
    """Estimated seconds of its experiment if no run is stored yet."""
    n = len(claim.cells(seeds))
    if not claim.lab:
        return LOAD_SECONDS + (claim.estimated_seconds(seeds) + RUN_SECONDS * n) / processes
    # A lab uses one process, and its time does not depend on training time.
    seed = result.seconds / result.seeds if result else 0.0
    return LOAD_SECONDS + max(
        seed * (seeds or claim.seeds), claim.estimated_seconds(seeds), RUN_SECONDS * n
    )
