"""Words about claims that the terminal and the page share."""

from __future__ import annotations

from typing import Any

from ..maps.summary import duration
from .record import Claim
from .rule import ClaimVerdict, Found
from .stored import ClaimResult, finding, plain

NOT_RUN = "not run"
ORDER = (
    "contradicted", "false in part", "holds in part", "no difference found", "undecided", "holds", NOT_RUN,
)  # fmt: skip
"""Verdicts in the order of a listing, negative and surprising results first."""


def chip(claim: Claim, result: ClaimResult | None) -> str:
    """The kind of the claim's verdict."""
    return NOT_RUN if result is None else result.verdict(claim).kind


def basis(claim: Claim, result: ClaimResult) -> str:
    """What a verdict rests on: seeds, day and time, or for counts of the census the day."""
    if not claim.arms:
        return f"read from code, {result.date}"
    flat = f"; {result.flat} of its runs were stopped early, flat at chance" if result.flat else ""
    return f"{result.seeds} seeds, measured {result.date}, {duration(result.seconds)} of one core{flat}"


def changed_parts(there: ClaimVerdict, here: ClaimVerdict) -> list[tuple[str, Found, Found]]:
    """The parts of a rule with another outcome on other seeds: what each says, and what was found there
    and here."""
    pairs = zip(there.parts, here.parts, strict=True)
    return [(says, was, now) for (says, was), (_, now) in pairs if was.outcome != now.outcome]


def on_second_seeds(claim: Claim, result: ClaimResult, second: ClaimResult | None) -> str:
    """Whether a second set of seeds says the same: "seeds 100 to 104: the same outcome in every part"."""
    if second is None:
        return "no second set of seeds was run"
    here = second.verdict(claim)
    seeds = f"seeds {second.first} to {second.first + second.seeds - 1}"
    parts = changed_parts(result.verdict(claim), here)
    if not parts:
        return f"{seeds}: the same outcome in every part"
    words = "; ".join(f"{says}: {now.outcome} ({now.evidence})" for says, _, now in parts)
    return f"{seeds}: {here.kind}, with another outcome of {words}"


LOAD_SECONDS = 5.0
"""Seconds until a process has imported PyTorch."""
RUN_SECONDS = 0.1
"""Seconds per run in addition to its steps, to build its model."""


def expected(claim: Claim, result: ClaimResult | None, seeds: int | None, processes: int) -> float:
    """Estimated seconds of its experiment if no run is stored yet."""
    n = len(claim.cells(seeds))
    if not n:
        return 0.0
    if not claim.lab:
        return LOAD_SECONDS + (claim.estimated_seconds(seeds) + RUN_SECONDS * n) / processes
    # A lab uses one process, and its time does not depend on training time.
    seed = result.seconds / result.seeds if result else 0.0
    return LOAD_SECONDS + max(
        seed * (seeds or claim.seeds), claim.estimated_seconds(seeds), RUN_SECONDS * n
    )


def as_json(claim: Claim, result: ClaimResult, second: ClaimResult | None = None) -> dict[str, Any]:
    """A result as the card shows it: the claim, the verdict with the outcome of each part, the numbers, and
    what a second set of seeds said."""
    verdict = result.verdict(claim)
    return {
        "claim": claim.key,
        "label": claim.label,
        "sentence": claim.sentence,
        "source": claim.source,
        "scope": claim.scope,
        "verdict": verdict.kind,
        "parts": [
            {"says": says, "outcome": found.outcome, "evidence": found.evidence}
            for says, found in verdict.parts
        ],
        "finding": finding(claim, result),
        "changed": claim.changed,
        "seeds": [result.first + k for k in range(result.seeds)],
        "numbers": {
            name: {"label": number.label, "unit": number.unit, "values": plain(result.numbers[name])}
            for name, number in claim.numbers.items()
        },
        "on_second_seeds": on_second_seeds(claim, result, second) if claim.arms else None,
        "engine": result.engine,
        "date": result.date,
        "seconds": result.seconds,
    }  # fmt: skip
