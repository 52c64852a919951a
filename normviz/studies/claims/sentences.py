"""Words about claims that the terminal and the page share."""

from __future__ import annotations

from typing import Any

from ...formats import duration
from .record import Claim
from .rule import ClaimVerdict, Judgement
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
    """What a verdict rests on: seeds, day, and about how long it takes; for counts of the census the day."""
    if not claim.arms:
        return f"counted in the census, {result.date}"
    takes = duration(core_seconds(claim, result, result.seeds))
    return f"{result.seeds} seeds, measured {result.date}, at most about {takes} of one core"


def changed_parts(
    there: ClaimVerdict, here: ClaimVerdict
) -> list[tuple[str, Judgement, Judgement]]:
    """The parts of a rule with another outcome on other seeds: what each says, and what was found there
    and here."""
    pairs = zip(there.parts, here.parts, strict=True)
    return [(says, was, now) for (says, was), (_, now) in pairs if was.outcome != now.outcome]


def on_second_seeds(claim: Claim, result: ClaimResult, second: ClaimResult | None) -> str:
    """Whether a second set of seeds says the same: "seeds 100 to 104: the same outcome in every part"."""
    if second is None:
        return "no second set of seeds was run"
    here = second.verdict(claim)
    parts = changed_parts(result.verdict(claim), here)
    if not parts:
        return f"{_seeds(second)}: the same outcome in every part"
    words = "; ".join(f"{says}: {now.outcome} ({now.evidence})" for says, _, now in parts)
    return f"{_seeds(second)}: {here.kind}, with another outcome of {words}"


def otherwise(claim: Claim, result: ClaimResult, second: ClaimResult | None) -> str:
    """What a finding may not keep back: the parts with another outcome on a second set of seeds, as a
    sentence; "" where there are none or no such set was run."""
    if second is None:
        return ""
    parts = changed_parts(result.verdict(claim), second.verdict(claim))
    words = "; ".join(f"{says} ({now.outcome}, not {was.outcome})" for says, was, now in parts)
    this = "this part is" if len(parts) == 1 else "these parts are"
    return f"On {_seeds(second)} {this} otherwise: {words}." if parts else ""


def _seeds(result: ClaimResult) -> str:
    return f"seeds {result.first} to {result.first + result.seeds - 1}"


LOAD_SECONDS = 5.0
"""Seconds until a process has imported PyTorch."""


def expected(claim: Claim, result: ClaimResult | None, seeds: int | None, processes: int) -> float:
    """At most about so many seconds takes its experiment if no run is stored yet."""
    seconds = core_seconds(claim, result, seeds)
    if not seconds:
        return 0.0
    return LOAD_SECONDS + seconds / (1 if claim.is_timing else processes)


def core_seconds(claim: Claim, result: ClaimResult | None, seeds: int | None = None) -> float:
    """At most about so many seconds of one CPU core: of runs an estimate, of a lab what the result took, as
    its time does not depend on training time."""
    seconds = claim.estimated_seconds(seeds)
    if not claim.lab or result is None:
        return seconds
    return max(seconds, result.seconds / result.seeds * (seeds or claim.seeds))


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
            {"says": says, "outcome": judgement.outcome, "evidence": judgement.evidence}
            for says, judgement in verdict.parts
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
        "basis": basis(claim, result),
    }  # fmt: skip
