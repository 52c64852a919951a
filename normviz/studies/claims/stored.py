"""Results of claims as small JSON files: every seed's numbers, the figure, and the rule they met."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from ...catalog import TASKS
from ...config import ENGINE, RunConfig
from ...home import shipped
from .choice import filled, redrawn
from .numbers import left_out
from .record import Apart, ChosenRate, Claim, Number, Scatter, Strip
from .rule import ClaimVerdict, Fact, Numbers, judge, value_sentence

JUDGES, CHECK = (0, 100), 200
"""The first seeds of the sets that judge together, and of the one that only checks what they say."""
SETS = {0: "", 100: "second", CHECK: "third"}
"""The folder of the results of each set of seeds, by its first seed."""


@dataclass(frozen=True)
class Series:
    """One arm of a figure: for each x the numbers of all seeds. Of a scatter each x is one run's, and
    `trains` says whether it trained."""

    arm: str
    label: str
    scheme: str
    x: Sequence[float | str]
    y: Sequence[Sequence[float]]
    trains: Sequence[bool] = ()


@dataclass(frozen=True, eq=False)
class ClaimResult:
    """What came out of a claim's experiment.

    engine   the version of the engine that trained its runs
    rule     the rule's sentences when it was run, and `arms` the settings of its arms: where either
             has changed since, it needs a new run
    numbers  by name, a number a seed; of a tuned number its values at each rate as well
    fallen   those of them again that differ if all runs that still fell came down to the floor
    first    the first of the seeds that judge
    sets     of results that were pooled the first seed and the number of seeds of each
    figure   what its figure shows; of pooled results what that of the first one shows
    runs     keys of the runs behind it
    tape     how many of them trained in the engine in C++, the others with PyTorch's own operations
    seconds  of one CPU core, as measured: CPU time, but of runs before 25 November 2026 the time that passed
             on a busy machine
    date     of the run, ISO
    """

    claim: str
    engine: int
    date: str
    seeds: int
    seconds: float
    arms: Mapping[str, Mapping[str, str]]
    rule: Sequence[str]
    numbers: Numbers
    figure: Sequence[Series]
    runs: Sequence[str]
    tape: int = 0
    fallen: Numbers = field(default_factory=dict)
    first: int = 0
    sets: Sequence[tuple[int, int]] = ()

    @property
    def seed_list(self) -> list[int]:
        """The seeds that judge, in the order of each number's values."""
        sets = self.sets or ((self.first, self.seeds),)
        return [first + k for first, n in sets for k in range(n)]

    @property
    def engines(self) -> list[str]:
        """The engine of each of its runs; none where a lab measured it."""
        runs = len(self.runs) * max(1, len(self.sets))  # each set has as many
        return ["tape"] * self.tape + ["eager"] * (runs - self.tape)

    def verdict(self, claim: Claim) -> ClaimVerdict:
        """The rule's verdict over the numbers."""
        return _verdict(self, claim)

    def fits(self, claim: Claim) -> bool:
        """Whether it was measured by this engine, in this experiment and for this rule."""
        return (
            self.engine == ENGINE
            and tuple(self.rule) == claim.rule_words()
            and self.arms == claim.settings()
            and set(self.numbers) == {*claim.numbers, *claim.read}
        )


@lru_cache(512)  # a page asks for all claims' verdicts at each of its clicks
def _verdict(result: ClaimResult, claim: Claim) -> ClaimVerdict:
    drawn = redrawn(claim, result.numbers)
    return judge(claim.rule, result.numbers, result.fallen, claim.general, drawn)


def number_sentences(claim: Claim, result: ClaimResult, seeds: bool = True) -> dict[str, str]:
    """Each number in words: "1.21 (1.20 to 1.23, 3 seeds)", with the seeds or without."""
    seeds = seeds and bool(claim.arms)
    return {
        name: _in_words(number, result.numbers[name], seeds)
        for name, number in claim.numbers.items()
    }


def _in_words(number: Number, values: Sequence[float], seeds: bool = False) -> str:
    """Of a rate that was chosen all that were: each set of seeds has one."""
    if isinstance(number.of, ChosenRate):
        return " and ".join(format(rate, number.form) for rate in dict.fromkeys(values))
    return value_sentence(values, number.form, seeds) + _unit(number, median(values))


def _unit(number: Number, value: float) -> str:
    """The unit behind a number; none behind "not reached"."""
    return f" {number.unit}" if number.unit and not math.isinf(value) else ""


def finding(claim: Claim, result: ClaimResult) -> str:
    """The result in a sentence: the claim's own with medians, of distances from a median with means, else the
    verdict if the outcomes are not those that it was written for."""
    verdict = result.verdict(claim)
    outcomes, sentence = claim.finding
    if outcomes != verdict.outcomes:
        return f"{claim.label}: {verdict.sentence}."
    words = {
        name: _in_words(number, values if isinstance(number.of, ChosenRate) else [middle(values)])
        for name, number in claim.numbers.items()
        for values in [result.numbers[name]]
        for middle in [fmean if isinstance(number.of, Apart) else median]
    }
    return sentence.format(**words)


def explained(claim: Claim, result: ClaimResult) -> str:
    """The claim's paragraph with the result's numbers, and what they are."""
    words = claim.words.format(**number_sentences(claim, result, seeds=False))
    if isinstance(claim.figure, Scatter) and claim.figure.names_misfits:
        words += f" {misfits(result)}"
    if not claim.arms:
        return words
    if tokens := held_out_tokens(claim):
        sizes = " or ".join(f"{n:,}" for n in sorted(tokens))
        words += f" Held-out losses are of the same {sizes} tokens in every seed."
    if chosen := at_edge(claim, result):
        words += (
            f" The lowest or the highest rate that was tried was chosen for {'; '.join(chosen)}: "
            "a better one may lie beyond it."
        )
    if claim.tuned:
        words += " The best rate has the lowest mean over the other seeds."
    if all(isinstance(part.check, Fact) for part in claim.rule):
        return f"{words} No seed changes these counts."
    return f"{words} Numbers are medians over {result.seeds} seeds, with their range."


def held_out_tokens(claim: Claim) -> set[int]:
    """How many tokens the held-out losses of its runs are of; none where it compares none, or where all that
    is held out is read."""
    if claim.lab or not any("held-out loss" in number.label for number in claim.numbers.values()):
        return set()
    configs = (cell.config for cell in claim.cells(1))
    return {
        config.batch * config.seq_len * config.held_out_batches
        for config in configs
        if config.steps and not TASKS[config.task].classes
    }


def at_edge(claim: Claim, result: ClaimResult) -> list[str]:
    """For what the chosen learning rate is the lowest or the highest of those that were tried."""
    labels = []
    for name, number in claim.numbers.items():
        if isinstance(number.of, ChosenRate):
            tried = claim.rates[number.of.name]
            if {*result.numbers[name]} & {tried[0], tried[-1]}:
                labels.append(number.label.split(", ", 1)[1])
    return labels


def misfits(result: ClaimResult) -> str:
    """Of a scatter: how many runs train, and how many of each arm a cut of x gets wrong that is wrong for the
    fewest of the other arms."""
    arms = [
        [(float(x), good) for x, good in zip(arm_series.x, arm_series.trains, strict=True)]
        for arm_series in result.figure
    ]
    wrong = {
        f"{arm_series.label} ({len(runs)} of {len(arm_series.x)})": len(runs)
        for arm_series, runs in zip(result.figure, left_out(arms), strict=True)
    }
    named = [label for label, n in Counter(wrong).most_common() if n]
    total, trained = sum(map(len, arms)), sum(good for runs in arms for _, good in runs)
    most = "all" if 2 * trained > total else "none"
    return (
        f"{trained} of {total} runs of the figure train, and to say that {most} do is wrong for "
        f"{min(trained, total - trained)}. The cut that is best for the others is wrong for "
        f"{sum(wrong.values())}: {', '.join(named) or 'none'}."
    )


def write(result: ClaimResult, path: Path) -> None:
    """Write a result; NaN becomes null, and infinity "inf"."""
    path.write_text(json.dumps(plain(asdict(result)), indent=1) + "\n")


def read_result(path: Path) -> ClaimResult:
    """Read a result."""
    fields = json.loads(path.read_text())
    fields["numbers"] = {name: _numbers(values) for name, values in fields["numbers"].items()}
    fields["fallen"] = {name: _numbers(values) for name, values in fields["fallen"].items()}
    fields["figure"] = [
        Series(**(arm_series | {"y": [_numbers(values) for values in arm_series["y"]]}))
        for arm_series in fields["figure"]
    ]
    return ClaimResult(**fields)


def folder() -> Path:
    """Where shipped results lie."""
    return shipped("assets") / "claims"


def shipped_sets(claim: Claim) -> list[ClaimResult]:
    """The results that ship of a claim, one of each set of seeds that judges; none of another rule or another
    version of the engine."""
    return [result for first in JUDGES if (result := _shipped(claim, first)) is not None]


def shipped_check(claim: Claim) -> ClaimResult | None:
    """What ships of a claim from the set of seeds that checks it; None where nothing does."""
    return _shipped(claim, CHECK)


def _shipped(claim: Claim, first: int) -> ClaimResult | None:
    path = folder() / SETS[first] / f"{claim.key}.json"
    return _read(path, path.stat().st_mtime_ns, claim) if path.exists() else None


def shipped_result(claim: Claim) -> ClaimResult | None:
    """What ships of a claim, of all sets of seeds together; None where nothing does."""
    sets = shipped_sets(claim)
    return pooled(claim, sets) if sets else None


def pooled(claim: Claim, sets: Sequence[ClaimResult]) -> ClaimResult:
    """One result of the seeds of all. The figure is that of the first set, a strip's of all."""
    return _pooled(claim, tuple(sets))


@lru_cache(256)
def _pooled(claim: Claim, sets: tuple[ClaimResult, ...]) -> ClaimResult:
    first, *others = sets
    if not others:
        return first
    numbers = filled(
        claim, {name: [x for one in sets for x in one.numbers[name]] for name in claim.read}
    )
    fell = {
        name: [x for one in sets for x in one.fallen.get(name, one.numbers[name])]
        for name in claim.read
    }
    fallen = changed(filled(claim, fell), numbers)
    figure = first.figure
    if isinstance(claim.figure, Strip):
        figure = [replace(row, y=[numbers[row.arm]]) for row in first.figure]
    return replace(
        first,
        date=max(one.date for one in sets),
        seeds=sum(one.seeds for one in sets),
        seconds=sum(one.seconds for one in sets),
        tape=sum(one.tape for one in sets),
        numbers=numbers,
        fallen=fallen,
        figure=figure,
        sets=tuple((one.first, one.seeds) for one in sets),
    )


def changed(numbers: Numbers, others: Numbers) -> dict[str, Sequence[float]]:
    """Those numbers that differ from others of the same name."""
    return {
        name: values
        for name, values in numbers.items()
        if not np.array_equal(values, others[name], equal_nan=True)
    }


def shipped_lanes(claim: Claim) -> tuple[RunConfig, ...]:
    """The duel that shows the claim, at the rates that were chosen in what ships of it."""
    result = shipped_result(claim)
    return claim.lanes(result.numbers if result else {})


@cache
def _read(path: Path, _changed: int, claim: Claim) -> ClaimResult | None:
    result = read_result(path)
    return result if result.fits(claim) else None


def plain(value: Any) -> Any:
    """A value for JSON: six digits of a number, "inf", and null for NaN."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return None if math.isnan(value) else float(f"{value:.6g}")
    return value


def _numbers(values: Sequence[float | str | None]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]
