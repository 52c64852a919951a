"""Words about claims that the terminal and the page share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...formats import duration
from .record import Claim
from .rule import ClaimVerdict, Judged, Judgement, Outcome, Part, verdict_of
from .stored import ClaimResult, finding, plain, pooled

NOT_RUN = "not run"
ORDER = (
    "contradicted", "holds in part", "no difference found", "undecided", "holds", NOT_RUN,
)  # fmt: skip
"""Verdicts in the order of a listing, negative and surprising results first."""


def chip(claim: Claim, result: ClaimResult | None) -> str:
    """The kind of the claim's verdict."""
    return NOT_RUN if result is None else result.verdict(claim).kind


def basis(claim: Claim, result: ClaimResult) -> str:
    """What a verdict rests on: seeds, steps, day, and about how long it takes; for counts of the census the
    day."""
    if not claim.arms:
        return f"counted in the census, {result.date}"
    sets = [n for _, n in result.sets] or [result.seeds]
    estimate = sum(claim.estimated_seconds(seeds) for seeds in sets)
    takes = duration(max(estimate, result.seconds))
    steps = f", runs of {words}" if (words := _steps(claim)) else ""
    return f"{result.seeds} seeds{steps}, measured {result.date}, at most about {takes} of one core"


def _steps(claim: Claim) -> str:
    """How many steps its runs have; empty where it measures times, or before the first step alone."""
    ends = sorted({cell.config.steps for cell in claim.cells(1)})
    if claim.is_timing or not ends[-1]:
        return ""
    return f"{' to '.join(map(str, dict.fromkeys((ends[0], ends[-1]))))} steps"


def late(claim: Claim, result: ClaimResult) -> str:
    """What of a rule was said when results were known, as a sentence, with the verdict that it would have
    without; empty where it has no control."""
    if not any(part.control for part in claim.rule):
        return ""
    verdict = result.verdict(claim)
    parts = [Judged(replace(part, control=False), judged) for part, judged in verdict.parts]
    other = verdict_of(parts, claim.general).kind
    without = f"; were none, the verdict would be {other}" if other != verdict.kind else ""
    return f"Which parts are controls was said when the results were known{without}"


def opens(claim: Claim, result: ClaimResult) -> str:
    """What of a claim with runs its duel shows, and what of the verdict's runs it does not."""
    lanes, settings = claim.lanes(result.numbers), len(claim.cells(1))
    some = f"{len(lanes)} of its {settings} settings" if len(lanes) < settings else "all settings"
    trains = f", trained for {lanes[0].steps} steps" if claim.lab and not _steps(claim) else ""
    return f"The duel shows {some}, with the first of {result.seeds} seeds{trains}"


def changed_parts(
    there: ClaimVerdict, here: ClaimVerdict
) -> list[tuple[Part, Judgement, Judgement]]:
    """The parts of a rule with another outcome on other seeds: the part, and what was found there and
    here."""
    pairs = zip(there.parts, here.parts, strict=True)
    return [(part, was, now) for (part, was), (_, now) in pairs if was.outcome != now.outcome]


@dataclass(frozen=True)
class Split:
    """A part whose outcome depends on the seeds: its outcome on each set, and on all seeds together."""

    part: Part
    sets: tuple[Outcome, ...]
    together: Judgement


def splits(claim: Claim, sets: Sequence[ClaimResult]) -> list[Split]:
    """The parts of a claim with another outcome on one set of seeds than on another, or on all."""
    verdicts = [result.verdict(claim) for result in sets]
    together = pooled(claim, sets).verdict(claim)
    rows = zip(together.parts, *(verdict.parts for verdict in verdicts), strict=True)
    found = [
        Split(one.part, tuple(j.outcome for _, j in alone), one.judgement) for one, *alone in rows
    ]
    return [split for split in found if {*split.sets} != {split.together.outcome}]


def by_set(claim: Claim, sets: Sequence[ClaimResult]) -> str:
    """Whether each set of seeds alone has the outcomes of all, as a sentence, and in which parts not."""
    if len(sets) < 2:
        return "One set of seeds was run"
    named = ", ".join(seeds_of(result) for result in sets)
    if not (found := splits(claim, sets)):
        return f"Each set of seeds alone ({named}) has the same outcome in every part"
    parts = "; ".join(
        f"{split.part.title}: {' and '.join(split.sets)}, together {split.together.outcome}"
        for split in found
    )
    return f"Each set of seeds alone ({named}). {parts}"


def seeds_of(result: ClaimResult) -> str:
    """The first and the last seed of one set."""
    return f"{result.first} to {result.first + result.seeds - 1}"


LOAD_SECONDS = 5.0
"""Seconds until a process has imported PyTorch."""


def expected(claim: Claim, sets: Sequence[ClaimResult], seeds: int | None, processes: int) -> float:
    """At most about so many seconds takes its experiment if no run is stored yet, by what the results of
    `sets` took."""
    seconds = core_seconds(claim, sets, seeds)
    if not seconds:
        return 0.0
    return LOAD_SECONDS + seconds / (1 if claim.is_timing else processes)


def core_seconds(claim: Claim, sets: Sequence[ClaimResult], seeds: int | None = None) -> float:
    """At most about so many seconds of one CPU core: what the same took in the set of seeds that was the
    fastest, as another may have run beside other programs; without a set an estimate."""
    estimates = [claim.estimated_seconds(result.seeds) for result in sets]
    took = (
        result.seconds / estimate
        for result, estimate in zip(sets, estimates, strict=True)
        if estimate
    )
    return claim.estimated_seconds(seeds) * min(took, default=1.0)


def as_json(claim: Claim, result: ClaimResult, sets: Sequence[ClaimResult] = ()) -> dict[str, Any]:
    """A result as the card shows it: the claim, the verdict with the outcome of each part, the numbers, and
    what each of its `sets` of seeds says alone."""
    verdict = result.verdict(claim)
    return {
        "claim": claim.key,
        "label": claim.label,
        "sentence": claim.sentence,
        "source": claim.source,
        "scope": claim.scope,
        "verdict": verdict.kind,
        "parts": [
            {
                "says": part.says,
                "control": part.control,
                "outcome": judgement.outcome,
                "evidence": judgement.evidence,
            }
            for part, judgement in verdict.parts
        ],
        "finding": finding(claim, result),
        "changed": claim.changed,
        "seeds": result.seed_list,
        "numbers": {
            name: {"label": number.label, "unit": number.unit, "values": plain(result.numbers[name])}
            for name, number in claim.numbers.items()
        },
        "by_set": by_set(claim, sets) if claim.arms else None,
        "engine": result.engine,
        "date": result.date,
        "basis": basis(claim, result),
    }  # fmt: skip
