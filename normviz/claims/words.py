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


LOAD_SECONDS = 5.0
"""Until a process has PyTorch."""
RUN_SECONDS = 0.1
"""Of a run, besides its steps: its model is built."""


def expected(claim: Claim, result: Result | None, seeds: int | None, processes: int) -> float:
    """About how many seconds its experiment takes where nothing of it is stored."""
    n = len(claim.cells(seeds))
    if not claim.lab:
        return LOAD_SECONDS + (claim.estimated_seconds(seeds) + RUN_SECONDS * n) / processes
    # A lab works alone, and how long it takes has nothing to do with training.
    seed = result.seconds / result.seeds if result else 0.0
    return LOAD_SECONDS + max(
        seed * (seeds or claim.seeds), claim.estimated_seconds(seeds), RUN_SECONDS * n
    )
