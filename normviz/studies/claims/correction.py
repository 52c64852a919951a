"""What is left of all decided parts of claims when it counts that there are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...runs.statistics import benjamini_hochberg, holm
from .choice import redrawn
from .record import Claim
from .rule import Judged, Judgement, Kind, verdict_of
from .stored import ClaimResult

BY_CHANCE = Judgement("undecided", "not decided after a correction for many parts")


@dataclass(frozen=True)
class Left:
    """What a correction leaves: how many decided parts stay so, those that do not, as (claim, part), and the
    verdicts that change, as (claim, verdict, verdict without those parts)."""

    kept: int
    lost: Sequence[tuple[Claim, Judged]]
    changed: Sequence[tuple[Claim, Kind, Kind]]


@dataclass(frozen=True)
class Family:
    """All parts of some claims, each with the least error rate at which its check would decide it as it
    does: 1 where it is undecided, None where no seed changes it."""

    parts: Sequence[tuple[Claim, Judged, float | None]]

    @property
    def tested(self) -> list[tuple[Claim, Judged, float]]:
        """Those that seeds decide or leave undecided."""
        return [(claim, judged, p) for claim, judged, p in self.parts if p is not None]

    @property
    def decided(self) -> int:
        """How many of those are decided."""
        return sum(judged.judgement.outcome != "undecided" for _, judged, _ in self.tested)

    def left(self, correction: Callable[[Sequence[float]], Sequence[bool]]) -> Left:
        """What `correction`, which says of p-values which stay decided, leaves."""
        kept = correction([p for _, _, p in self.tested])
        lost = [
            (claim, judged)
            for (claim, judged, _), stays in zip(self.tested, kept, strict=True)
            if not stays and judged.judgement.outcome != "undecided"
        ]
        changed = []
        for claim in dict.fromkeys(claim for claim, _ in lost):
            own = [judged for it, judged, _ in self.parts if it is claim]
            fewer = [
                Judged(judged.part, BY_CHANCE) if (claim, judged) in lost else judged
                for judged in own
            ]
            was, now = (verdict_of(parts, claim.general).kind for parts in (own, fewer))
            if was != now:
                changed.append((claim, was, now))
        return Left(self.decided - len(lost), lost, changed)


def family(results: Iterable[tuple[Claim, ClaimResult]]) -> Family:
    """The parts of these claims' results."""
    return Family(
        [
            (claim, judged, judged.part.p_value(result.numbers, result.fallen, drawn))
            for claim, result in results
            for drawn in [redrawn(claim, result.numbers)]
            for judged in result.verdict(claim).parts
        ]
    )


def sentences(of: Family) -> list[str]:
    """How many parts are judged, how many chance would decide, and what two corrections leave."""
    tested = len(of.tested)
    step, any_ = of.left(benjamini_hochberg), of.left(holm)
    lines = [
        f"{len(of.parts)} parts are judged. {len(of.parts) - tested} of them no seed changes. Of the other "
        f"{tested} seeds decide {of.decided}, each at 5 %: if all {tested} lay on their limits, "
        f"{0.05 * tested:.0f} would be decided by chance.",
        f"Benjamini and Hochberg's correction, for at most 5 % wrong ones among those that are decided, "
        f"keeps {step.kept} of {of.decided}.{_changes(step)}",
        f"Holm's, for a chance of at most 5 % that one in all is wrong, keeps {any_.kept}.{_changes(any_)}",
    ]
    if step.lost:
        lines.append("Not decided after the first correction:")
        lines += [
            f"    {claim.key}: {part.title} ({judgement.outcome}; {judgement.evidence})"
            for claim, (part, judgement) in step.lost
        ]
    return lines


def _changes(left: Left) -> str:
    if not left.changed:
        return " No verdict changes."
    changes = "; ".join(f"{claim.key} {was} -> {now}" for claim, was, now in left.changed)
    return f" Verdicts that change: {changes}."
