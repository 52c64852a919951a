"""What came out of a duel, in words: each lane over its seeds, and the lanes compared seed by seed.

Lanes are compared by their last held-out losses where both have them, and beside that by their final
training losses (mean of the last tenth of the steps). A pair is a run of each lane with the same seeds. The
sentences say no more than the runs show:

* each names the loss that it compares,
* one seed gives a difference and no interval,
* two lanes are told apart only by the rule of `runs.statistics.compare`,
* a run that diverged has no final loss, so no mean difference is made with it,
* losses that still fall at the end, and lanes that learn only in some seeds, are named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ..observed import Observed, label
from . import Recording
from .lane import Lane
from .recording import of_seeds
from .statistics import PAIRS, compare

Runs = Mapping[str, Sequence[Recording]]
"""By a lane's name its runs, one per seed, its own seed first. Empty: none with its settings yet."""


@dataclass(frozen=True)
class DuelOutcome:
    """What came out.

    lanes        each lane's name, and the outcome of its runs
    comparisons  a sentence for each other lane, compared with the reference
    notes        what limits these sentences
    """

    lanes: tuple[tuple[str, str], ...]
    comparisons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it, a line each."""
        return (
            *(f"{name}: {words}." for name, words in self.lanes),
            *self.comparisons,
            *self.notes,
        )


def outcome(lanes: Runs, seeds: int = 1, reference: str = "") -> DuelOutcome:
    """What came out of lanes, compared with the `reference` (default: the first lane).

    `seeds` is the number of seeds that were requested, where not all have a run yet. Raises ValueError
    for a reference that is no lane.

        outcome({name: [collect(train(c)) for c in seeded(config, 5)] for name, config in ...})
    """
    reference = reference or next(iter(lanes), "")
    if reference not in lanes:
        raise ValueError(f"reference is {reference!r}, allowed is one of {', '.join(lanes)}")
    others = [name for name in lanes if name != reference]
    comparisons = [_compared(lanes, reference, name) for name in others]
    return DuelOutcome(
        tuple((name, _lane(runs, seeds)) for name, runs in lanes.items()),
        tuple(comparison.sentence for comparison in comparisons),
        tuple(_notes(lanes, comparisons)),
    )


def came_out(lanes: Sequence[Lane]) -> DuelOutcome:
    """What came out of these lanes over all their seeds, compared with the first."""
    return outcome({f"{lane.letter} {label(lane.config)}": lane.recordings for lane in lanes})


def _lane(runs: Sequence[Recording], seeds: int) -> str:
    if not runs:
        return "not trained with these settings yet"
    n = max(seeds, len(runs))
    if n > 1:
        return of_seeds([run for run in runs if run.is_done], n)
    words, held_out = runs[0].verdict.sentence, runs[0].held_out
    if runs[0].status != "finished" or held_out is None or "held-out" in words:
        return words
    return f"{words}; held-out {held_out:.2f}"


# Two lanes.


@dataclass(frozen=True)
class _Compared:
    sentence: str
    has_interval: bool = False
    is_held_out: bool = False


SMALLEST = 0.005
"""Nats from which on a difference of training losses is named beside that of held-out losses."""
Pair = tuple[Recording, Recording]
"""The runs of the reference and of the other lane from the same seeds."""


def _compared(lanes: Runs, reference: str, name: str) -> _Compared:
    if why := _incomparable(lanes, reference, name):
        return _Compared(f"{name} is not compared with {reference}: {why}.")
    pairs = _pairs(lanes[reference], lanes[name])
    if lost := list(_diverged(pairs, reference, name)):
        return _Compared(
            f"{name} and {reference} have no mean difference: {' and '.join(lost)}, and a run that "
            "diverged has no final loss."
        )
    final = [(a.final, b.final) for a, b in pairs]
    if isinstance(pairs[0][0].config, Observed):
        return _Compared(_sentence(final, "", reference, name), len(pairs) > 1)
    held_out = [
        (a.held_out, b.held_out)
        for a, b in pairs
        if a.held_out is not None and b.held_out is not None
    ]
    if len(held_out) < len(pairs):
        return _Compared(_sentence(final, "training loss", reference, name), len(pairs) > 1)
    if not np.isfinite(held_out).all():
        return _Compared(f"{name} is not compared with {reference}: a held-out loss is not finite.")
    sentence = _sentence(held_out, "held-out loss", reference, name)
    mean = fmean(b - a for a, b in final)
    if abs(mean) >= SMALLEST:
        who = "Its training loss ends" if len(pairs) == 1 else "Its mean training loss ends"
        sentence += f" {who} {_size(mean)} {_side(mean)}."
    return _Compared(sentence, len(pairs) > 1, is_held_out=True)


def _incomparable(lanes: Runs, reference: str, name: str) -> str:
    """Why two lanes can't be compared; else empty."""
    for lane in (reference, name):
        if not any(run.is_done for run in lanes[lane]):
            return f"{lane} has no finished run with these settings"
    a, b = (next(run for run in lanes[lane] if run.is_done) for lane in (reference, name))
    if (a.config.task, a.config.text) != (b.config.task, b.config.text):
        return "they have different tasks, so their losses mean different things"
    if any(not isinstance(run.config, Observed) and run.config.steps == 0 for run in (a, b)):
        return "a lane of 0 steps is not trained"
    if not _pairs(lanes[reference], lanes[name]):
        return "no seed has a finished run in both"
    return ""


def _pairs(first: Sequence[Recording], second: Sequence[Recording]) -> list[Pair]:
    """The finished runs of both lanes by seed, in the order of the first."""
    by_seeds = {_seeds(run): run for run in second if run.is_done}
    return [(a, by_seeds[_seeds(a)]) for a in first if a.is_done and _seeds(a) in by_seeds]


def _seeds(run: Recording) -> tuple[int | str, int]:
    config = run.config
    if isinstance(config, Observed):
        return config.batches or config.key, 0
    return config.init_seed, config.data_seed


def _diverged(pairs: Sequence[Pair], *names: str) -> Iterator[str]:
    for name, runs in zip(names, zip(*pairs, strict=True), strict=True):
        n = sum(not math.isfinite(run.final) or run.status == "diverged" for run in runs)
        if n:
            yield f"{name} diverged" + (f" in {n} of {len(runs)} seeds" if len(runs) > 1 else "")


def _sentence(losses: Sequence[tuple[float, float]], what: str, reference: str, name: str) -> str:
    """ "B ends above A in held-out loss in 5 of 5 seeds, by 2.11 nats on average (95 % interval ...)", from
    the losses of both by seed."""
    n, differences = len(losses), [b - a for a, b in losses]
    in_what, unit = (f" in {what}", " nats") if what else ("", "")
    if not any(differences):
        at = f" in {n} of {n} seeds" if n > 1 else ""
        return f"{name} ends at the same {what or 'loss'} as {reference}{at}."
    comparison = compare([b for _, b in losses], [a for a, _ in losses])
    side, sign = _side(comparison.difference), -1 if comparison.difference < 0 else 1
    if n == 1:
        size = _size(comparison.difference)
        return f"{name} ends {size}{unit} {side} {reference}{in_what}. One seed gives no interval."
    digits = max(map(_digits, (comparison.difference, comparison.high - comparison.difference)))
    mean, *ends = (
        f"{sign * x:.{digits}f}" for x in (comparison.difference, comparison.low, comparison.high)
    )
    low, high = ends[::sign]
    same = sum(sign * d > 0 for d in differences)
    words = (
        f"{name} ends {side} {reference}{in_what} in {same} of {n} seeds, by {mean}{unit} on average (95 % "
        f"interval {low} to {high} by Student's t, paired by seed)"
    )
    if comparison.differs:
        return f"{words}."
    if n < PAIRS:
        return f"{words}. At least {PAIRS} seeds are needed to tell them apart."
    return f"{words}. These seeds do not tell them apart{in_what}."


def _side(difference: float) -> str:
    return "below" if difference < 0 else "above"


def _size(difference: float) -> str:
    return format(abs(difference), f".{_digits(difference)}f")


def _digits(size: float) -> int:
    """Decimals that show the first digit of a size, from 2 to 4."""
    return min(4, max(2, math.ceil(-math.log10(abs(size))))) if size else 2


# What limits the sentences.


def _notes(lanes: Runs, comparisons: Sequence[_Compared]) -> Iterator[str]:
    ended = {name: [run for run in runs if run.is_done] for name, runs in lanes.items()}
    steps = {name: runs[0].total for name, runs in ended.items() if runs}
    if comparisons and len(set(steps.values())) > 1:
        words = ", ".join(f"{name} {n}" for name, n in steps.items())
        yield f"The lanes have different numbers of steps: {words}."
    falling = {name: sum(run.verdict.falls for run in runs) for name, runs in ended.items()}
    if any(falling.values()):
        words = ", ".join(
            f"{name} ({n} of {len(ended[name])} seeds)" if len(ended[name]) > 1 else name
            for name, n in falling.items()
            if n
        )
        yield f"The loss still falls at the end: {words}. More steps can change what came out."
    clipped = {name: [run.clipped for run in runs] for name, runs in ended.items()}
    parts = [
        f"{sum(shares) / len(shares):.0%} of the steps of {name}"
        for name, some in clipped.items()
        if (shares := [share for share in some if share is not None])
    ]
    if parts:
        yield f"Gradients were clipped in {', in '.join(parts)}."
    if not any(comparison.has_interval for comparison in comparisons):
        return
    for name, runs in ended.items():
        learned = sum(run.has_learned for run in runs)
        if 0 < learned < len(runs):
            yield (
                f"{name} learns in some seeds only. The interval assumes a normal distribution, so trust "
                "these counts more than the mean."
            )
    if any(comparison.is_held_out for comparison in comparisons):
        yield "The interval is over seeds. It says nothing about other held-out examples."
    if sum(comparison.has_interval for comparison in comparisons) > 1:
        yield "Each interval is for one pair of lanes, not for all pairs at once."
