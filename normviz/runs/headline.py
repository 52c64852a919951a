"""What came out in each lane of a duel, in one sentence: the headline of its page."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog import NORMS
from ..config import RunConfig
from ..formats import listed
from .lane import Lane
from .names import placements, title
from .recording import Recording
from .verdict import Verdict

LONGEST = 84
"""Characters of a headline with the placements' names; in a longer one the lanes are letters."""
OUTCOMES = {
    "learned": "learned", "solved": "solved the task", "learned little": "learned little",
    "learned in part": "learned in part", "memorised": "memorised the training data",
    "training only": "learned in training only", "at chance": "ended at chance",
    "back at chance": "ended back at chance", "above": "ended above chance", "diverged": "diverged",
    "still falling": "is still falling", "not settled": "did not settle",
    "short": "ran too few steps to judge", "measured": "was measured before training",
    "stopped": "was stopped", "failed": "failed", "none": "is not trained yet",
    "changed": "has new settings",
}  # fmt: skip


def headline(lanes: Sequence[Lane[RunConfig]]) -> str:
    """ "Pre-LN learned, Post-LN ended at chance"; of open runs, what is compared."""
    outcomes = [_outcome(lane) for lane in lanes]
    configs = [lane.config for lane in lanes]
    if opened := [lane.run for lane in lanes if lane.run and lane.run.is_open]:
        if all(run.status == "paused" for run in opened):
            return f"Paused {_where(opened)}: {title(configs)}"
        return f"Training {title(configs)}"
    letters = [lane.letter for lane in lanes]
    for names in filter(None, (placements(configs), _norms(configs), letters)):
        words = _sentence(names, outcomes)
        if len(words) <= LONGEST:
            break
    return words


def chip(lane: Lane[RunConfig]) -> Verdict:
    """A lane's verdict, or why it has none."""
    if lane.run is None:
        return Verdict("none", "not trained yet: press Train")
    if not lane.is_current and not lane.run.is_open:
        return Verdict("changed", "settings changed: press Train")
    if lane.run.status == "queued":  # the player shows its changing position
        return Verdict("queued", "waits in the queue")
    return lane.run.verdict


def _norms(configs: Sequence[RunConfig]) -> list[str]:
    """The norms of lanes of one placement; none where the placements differ, or two norms are the same."""
    norms = [NORMS.label(config.norm) for config in configs]
    is_clear = len({config.scheme for config in configs}) == 1 and len(set(norms)) == len(norms)
    return norms if is_clear else []


def _where(runs: Sequence[Recording]) -> str:
    """ "at step 49", or "at steps 49 and 38" of runs that are not at the same one, in their order."""
    last = [int(run.steps.step[-1]) for run in runs if len(run.steps)]
    if not last:
        return "before the first step"
    if len(set(last)) == 1:
        return f"at step {last[0]:,}"
    return f"at steps {listed([f'{step:,}' for step in last])}"


def _outcome(lane: Lane[RunConfig]) -> str:
    verdict = chip(lane)
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
