"""The page's headline: what came out in each lane, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from normviz.duel.names import placements, title
from normviz.formats import listed
from normviz.runs.store import Run

from ...session.backend import SharedBackend
from .lanes import Lane, chip, last_step

LONGEST = 84
"""Characters of a headline with the placements' names; in a longer one the lanes are letters."""
OUTCOMES = {
    "learned": "learned", "solved": "solved the task", "stuck": "stayed at chance",
    "above": "ended above chance", "diverged": "diverged", "unsettled": "did not settle",
    "short": "ran too few steps to judge", "measured": "was measured before training",
    "stopped": "was stopped", "failed": "failed", "none": "is not trained yet",
    "changed": "has new settings",
}  # fmt: skip


def headline(lanes: list[Lane], backend: SharedBackend) -> str:
    """ "Pre-LN learned, Post-LN stayed at chance"; while something trains or is paused, what is compared."""
    said = [_outcome(lane, backend) for lane in lanes]
    configs = [lane.config for lane in lanes]
    if opened := [lane.run for lane in lanes if lane.run and lane.run.is_open]:
        if all(run.status == "paused" for run in opened):
            return f"Paused {_where(opened, backend)}: {title(configs)}"
        return f"Training {title(configs)}"
    for names in (placements(configs), [lane.name for lane in lanes]):
        words = _sentence(names, said)
        if len(words) <= LONGEST:
            break
    return words


def _where(runs: Sequence[Run], backend: SharedBackend) -> str:
    """ "at step 49", or "at steps 38 and 49" of runs that are not at the same one."""
    last = {step for run in runs if (step := last_step(run, backend)) is not None}
    if not last:
        return "before the first step"
    return f"at step{'s' * (len(last) > 1)} {listed([f'{step:,}' for step in sorted(last)])}"


def _outcome(lane: Lane, backend: SharedBackend) -> str:
    verdict = chip(lane, backend)
    for words in ("learned little", "learned in part"):
        if verdict.sentence.startswith(words):
            return words
    return OUTCOMES.get(verdict.kind, verdict.sentence)


def _sentence(names: Sequence[str], outcomes: Sequence[str]) -> str:
    """Lanes with the same outcome share a verb."""
    groups: dict[str, list[str]] = {}
    for name, outcome in zip(names, outcomes, strict=True):
        groups.setdefault(outcome, []).append(name)
    plural = {"was": "were", "is": "are", "has": "have"}
    parts = []
    for outcome, those in groups.items():
        verb, _, rest = outcome.partition(" ")
        if len(those) > 1 and verb in plural:
            outcome = f"{plural[verb]} {rest}"
        parts.append(f"{listed(list(dict.fromkeys(those)))} {outcome}")
    return ", ".join(parts)
