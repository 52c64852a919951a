"""Pass rules: the checks on a claim's numbers, and the verdict that follows.

A number has one value per seed. A check compares an interval over the seeds with what is claimed:

    true           the interval lies inside of what is claimed
    false          it lies outside
    no difference  of two arms: the interval of their difference lies within what is too small to matter
    undecided      anything else: the seeds straddle the limit, they are too few, or a run still fell

More seeds narrow the interval, so that a check whose number meets its limit becomes true more often. Two
kinds of interval are used. `Between`, `Less` and `Same` use Student's 95 % interval of the mean, `NotWorse`
the 90 % one, whose ends are one-sided 95 % limits. It needs three seeds and suits numbers that scatter around
a mean. `Most` and `LessInMost` count seeds and use the sign test at 5 %. They need five seeds and suit
numbers that jump: a run that trains or does not, a rate on a grid, a number of steps that is infinite where
the goal was not reached. `Fact` is for a number that no seed changes. `Correlated` is for a correlation over
placements, which more seeds of the same placements do not make surer. `python -m tests.bench.rules` measures
how often each is wrong on simulated data.

Where learning rates are chosen on the other seeds, an interval of a mean includes the choice: its variance is
that of the mean over seeds that are drawn again, with rates chosen on them again (`choice`).

A run that still falls has not failed. Its numbers are known as measured and as they would be if the run came
down to the floor, and a check is decided only if it has the same outcome for both.

A part says what the claim says, or it is a control, which says what else has to be so for the claim to be the
reason of what is seen. The verdict is about the parts that are no controls:

    holds                every part is true, and no control is false
    holds in part        some are true and others are not so, or a control is false
    contradicted         some are false and none is true; of a general claim, one is false
    no difference found  every part found no difference
    undecided            anything else, also where some are true and the others are undecided
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist, fmean, median, stdev
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...runs.statistics import (
    Z95,
    Confidence,
    Interval,
    interval,
    is_majority,
    p_value,
    sign_test,
)

Outcome = Literal["true", "false", "no difference", "undecided"]
Kind = Literal["holds", "holds in part", "contradicted", "no difference found", "undecided"]
MARKS: dict[Outcome, str] = {"true": "✓", "false": "✗", "no difference": "=", "undecided": "–"}
Numbers = Mapping[str, Sequence[float]]
Labels = Mapping[str, str]
SEEDS = 3
"""Seeds that an interval of a mean needs."""


@dataclass(frozen=True)
class Drawn:
    """The numbers at chosen learning rates of seeds that are drawn again from the same ones (bootstrap), with
    rates chosen on them again: arrays [draws, seeds]. `seeds` are the indices of those that were drawn."""

    numbers: Mapping[str, NDArray[Any]]
    seeds: NDArray[np.intp]

    def of(self, name: str, values: Sequence[float]) -> NDArray[Any]:
        """A number of the seeds that were drawn; where no rate is chosen for it, of its values."""
        return self.numbers[name] if name in self.numbers else np.asarray(values)[self.seeds]

    def variance(self, name: str, ratio: bool) -> float | None:
        """Of the mean of a number (with `ratio` of its logarithm); None where no rate is chosen for it."""
        if name not in self.numbers:
            return None
        with np.errstate(all="ignore"):
            return _variance(np.log(self.numbers[name]) if ratio else self.numbers[name])


@dataclass(frozen=True)
class Judgement:
    """The judgement of a check: its outcome, and the evidence in a few words."""

    outcome: Outcome
    evidence: str


@dataclass(frozen=True)
class OfOne:
    """A check of one number, with limits."""

    name: str
    low: float = -math.inf
    high: float = math.inf

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that the check reads."""
        return (self.name,)


@dataclass(frozen=True)
class OfTwo:
    """A check that compares two numbers."""

    name: str
    other: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that the check reads."""
        return self.name, self.other

    def difference(
        self, numbers: Numbers, drawn: Drawn | None, confidence: Confidence = "95 %"
    ) -> Interval | None:
        """The interval of the mean difference over pairs of seeds."""
        values, others = numbers[self.name], numbers[self.other]
        differences = [a - b for a, b in zip(values, others, strict=True)]
        return interval(differences, confidence=confidence, variance=self.variance(numbers, drawn))

    def variance(self, numbers: Numbers, drawn: Drawn | None, ratio: bool = False) -> float | None:
        """The variance of the mean difference (with `ratio` of the logarithm of the quotient) where rates are
        chosen; None where none is."""
        if drawn is None or not {self.name, self.other} & drawn.numbers.keys():
            return None
        values, others = (drawn.of(name, numbers[name]) for name in self.names)
        with np.errstate(all="ignore"):
            return _variance(np.log(values / others) if ratio else values - others)


@dataclass(frozen=True)
class Between(OfOne):
    """The mean over the seeds lies from `low` to `high`; with `ratio` the geometric mean."""

    ratio: bool = False

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """By the interval of the mean. A number that is not finite leaves it undecided."""
        values = numbers[self.name]
        if few := _few(values):
            return few
        mean = interval(values, self.ratio, variance=self._variance(drawn))
        if mean is None:
            return Judgement("undecided", f"not finite in some of {len(values)} seeds")
        kind = "geometric mean" if self.ratio else "mean"
        return Judgement(_placed(mean, self.low, self.high), f"{kind} {_ends(mean)}")

    def _variance(self, drawn: Drawn | None) -> float | None:
        return None if drawn is None else drawn.variance(self.name, self.ratio)

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        limits = self.low, self.high
        return _p_of_mean(numbers[self.name], limits, self.ratio, self._variance(drawn))

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        mean = "geometric mean" if self.ratio else "mean"
        limits = _limits(self.low, self.high)
        return f"{labels[self.name]} {limits} (95 % interval of the {mean})"


@dataclass(frozen=True)
class Most(OfOne):
    """In most seeds the number lies from `low` to `high`."""

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """By a sign test over the seeds. What is not a number lies nowhere."""
        values = numbers[self.name]
        inside = sum(self.low <= x <= self.high for x in values)
        evidence = f"in {inside} of {len(values)} seeds"
        if is_majority(inside, len(values)):
            return Judgement("true", evidence)
        return Judgement(
            "false" if is_majority(len(values) - inside, len(values)) else "undecided", evidence
        )

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        values = numbers[self.name]
        inside = sum(self.low <= x <= self.high for x in values)
        return sign_test(max(inside, len(values) - inside), len(values))

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        return f"{labels[self.name]} {_limits(self.low, self.high)} in most seeds (sign test, 5 %)"


@dataclass(frozen=True)
class Correlated(OfOne):
    """A rank correlation over some placements lies from `low` to `high` for placements in general."""

    placements: int = 0

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """By the interval over placements of the mean over the seeds, whose scatter is not counted (Fisher's
        transformation, with the variance of Bonett and Wright 2000, doi:10.1007/BF02294183)."""
        values = numbers[self.name]
        correlation = self.interval(values)
        if correlation is None:
            return Judgement("undecided", f"mean {fmean(values):g}, which has no interval")
        ends = f"{correlation.low:.3g} to {correlation.high:.3g}, {self.placements} placements"
        return Judgement(
            _placed(correlation, self.low, self.high), f"mean {correlation.mean:.3g} ({ends})"
        )

    def interval(self, values: Sequence[float]) -> Interval | None:
        """Over placements, of the mean over the seeds; None of a mean of 1 or -1."""
        mean = fmean(values)
        if not abs(mean) < 1:
            return None
        half = Z95 * math.sqrt((1 + mean**2 / 2) / (self.placements - 3))
        low, high = (math.tanh(math.atanh(mean) + end) for end in (-half, half))
        return Interval(mean, low, high, self.placements)

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        mean = fmean(numbers[self.name])
        if not abs(mean) < 1:
            return 1.0
        scatter = math.sqrt((1 + mean**2 / 2) / (self.placements - 3))
        ends = [end for end in (self.low, self.high) if abs(end) < 1]
        distance = min(abs(math.atanh(mean) - math.atanh(end)) for end in ends)
        return 2 * NormalDist().cdf(-distance / scatter)

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        limits = _limits(self.low, self.high)
        return f"{labels[self.name]} {limits} (95 % interval over {self.placements} placements)"


@dataclass(frozen=True)
class Fact(OfOne):
    """A number that no seed changes lies from `low` to `high`."""

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """True or false; undecided where the seeds differ after all."""
        values = set(numbers[self.name])
        if len(values) > 1:
            return Judgement(
                "undecided", f"{min(values):g} to {max(values):g}, though no seed should matter"
            )
        (value,) = values
        return Judgement("true" if self.low <= value <= self.high else "false", f"{value:.4g}")

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> None:
        """None: no seed changes it, so chance does not either."""
        return None

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        return f"{labels[self.name]} {_limits(self.low, self.high)}"


@dataclass(frozen=True)
class Less(OfTwo):
    """One number is less than another in the mean over pairs of seeds; with `ratio` as a quotient.

    A difference below `matters` (with `ratio` a factor) is none. With 0 none is ever excluded.
    """

    matters: float = 0.0
    ratio: bool = False

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """False if the other one is less."""
        values, others = numbers[self.name], numbers[self.other]
        if few := _few(values):
            return few
        if self.ratio:
            quotients = [_over(a, b) for a, b in zip(values, others, strict=True)]
            mean = interval(
                quotients, ratio=True, variance=self.variance(numbers, drawn, ratio=True)
            )
            equal, size = 1.0, math.log(self.matters) if self.matters else 0.0
        else:
            mean, equal, size = self.difference(numbers, drawn), 0.0, self.matters
        if mean is None:
            return Judgement("undecided", f"not finite in some of {len(values)} seeds")
        name = "quotient" if self.ratio else "difference"
        near = (math.exp(-size), math.exp(size)) if self.ratio else (-size, size)
        outcome: Outcome = "undecided"
        if size and near[0] < mean.low and mean.high < near[1]:
            outcome = "no difference"
        elif not mean.low <= equal <= mean.high:
            outcome = "true" if mean.high < equal else "false"
        return Judgement(outcome, f"{name} {_ends(mean)}")

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        values, others = numbers[self.name], numbers[self.other]
        if self.ratio:
            gaps = [_over(a, b) for a, b in zip(values, others, strict=True)]
            ends = (1 / self.matters, self.matters) if self.matters else ()
        else:
            gaps = [a - b for a, b in zip(values, others, strict=True)]
            ends = (-self.matters, self.matters)
        if self.judge(numbers, drawn).outcome != "no difference":
            ends = (1.0,) if self.ratio else (0.0,)
        return _p_of_mean(gaps, ends, self.ratio, self.variance(numbers, drawn, self.ratio))

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        text = f"{labels[self.name]} is less than {labels[self.other]} (95 % interval of the mean "
        text += "quotient)" if self.ratio else "difference)"
        if not self.matters:
            return text
        size = f"a factor of {self.matters:g} of 1" if self.ratio else f"{self.matters:g} of 0"
        return f"{text}; no difference where all of it is within {size}"


@dataclass(frozen=True)
class LessInMost(OfTwo):
    """One number is less than another in most pairs of seeds, by a sign test; ties count for neither."""

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """False if the other one is less in most pairs, no difference if most are equal."""
        pairs = list(zip(numbers[self.name], numbers[self.other], strict=True))
        less, more = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
        equal, n = sum(a == b for a, b in pairs), len(pairs)
        evidence = f"less in {less} of {n} pairs of seeds, equal in {equal}, greater in {more}"
        counted: tuple[tuple[int, Outcome], ...] = (
            (less, "true"), (more, "false"), (equal, "no difference"),
        )  # fmt: skip
        outcomes: list[Outcome] = [word for count, word in counted if is_majority(count, n)]
        return Judgement(outcomes[0] if outcomes else "undecided", evidence)

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        pairs = list(zip(numbers[self.name], numbers[self.other], strict=True))
        less, more = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
        return sign_test(max(less, more, len(pairs) - less - more), len(pairs))

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        return (
            f"{labels[self.name]} is less than {labels[self.other]} in most pairs of seeds "
            "(sign test, 5 %)"
        )


@dataclass(frozen=True)
class NotWorse(OfTwo):
    """One number is greater than another by less than `by`, in the mean over pairs of seeds (one-sided)."""

    by: float

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """By the 90 % interval, whose ends are one-sided 95 % limits."""
        values = numbers[self.name]
        if few := _few(values):
            return few
        mean = self.difference(numbers, drawn, "90 %")
        if mean is None:
            return Judgement("undecided", f"not finite in some of {len(values)} seeds")
        return Judgement(_placed(mean, -math.inf, self.by), f"difference {_ends(mean, '90 %: ')}")

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        gaps = [a - b for a, b in zip(numbers[self.name], numbers[self.other], strict=True)]
        return _p_of_mean(gaps, (self.by,), variance=self.variance(numbers, drawn)) / 2

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        return (
            f"{labels[self.name]} is greater than {labels[self.other]} by less than {self.by:g} "
            "(one-sided 95 % limit of the mean difference)"
        )


@dataclass(frozen=True)
class Same(OfTwo):
    """Two numbers are equal up to `within`, in the mean over pairs of seeds."""

    within: float

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """By the interval of the paired difference."""
        values = numbers[self.name]
        if few := _few(values):
            return few
        mean = self.difference(numbers, drawn)
        if mean is None:
            return Judgement("undecided", f"not finite in some of {len(values)} seeds")
        return Judgement(_placed(mean, -self.within, self.within), f"difference {_ends(mean)}")

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float:
        """The least error rate at which it would be decided as it is."""
        gaps = [a - b for a, b in zip(numbers[self.name], numbers[self.other], strict=True)]
        limits = -self.within, self.within
        return _p_of_mean(gaps, limits, variance=self.variance(numbers, drawn))

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        return (
            f"{labels[self.name]} equals {labels[self.other]} up to {self.within:g} (95 % interval "
            "of the mean difference)"
        )


@dataclass(frozen=True)
class All:
    """All of these checks together."""

    checks: tuple[Simple, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers that the check reads."""
        return tuple(dict.fromkeys(name for check in self.checks for name in check.names))

    def judge(self, numbers: Numbers, drawn: Drawn | None = None) -> Judgement:
        """True if all checks are, false if one is, else undecided."""
        judgements = [check.judge(numbers, drawn) for check in self.checks]
        outcomes = {judgement.outcome for judgement in judgements}
        outcome: Outcome = "false" if "false" in outcomes else "undecided"
        if outcomes == {"true"}:
            outcome = "true"
        return Judgement(outcome, "; ".join(judgement.evidence for judgement in judgements))

    def p_value(self, numbers: Numbers, drawn: Drawn | None = None) -> float | None:
        """The least error rate at which it would be decided as it is: the largest of its checks, or the
        least of those that are false."""
        found = [
            (check.judge(numbers, drawn).outcome, check.p_value(numbers, drawn))
            for check in self.checks
        ]
        tested = [(outcome, p) for outcome, p in found if p is not None]
        false = [p for outcome, p in tested if outcome == "false"]
        if any(outcome == "false" for outcome, _ in found):
            return min(false, default=None)
        return max((p for _, p in tested), default=None)

    def sentence(self, labels: Labels) -> str:
        """The check in words, with the labels of its numbers."""
        return "; and ".join(check.sentence(labels) for check in self.checks)


Simple = Between | Most | Correlated | Fact | Less | LessInMost | NotWorse | Same
Check = Simple | All


@dataclass(frozen=True)
class Part:
    """A statement and the check that decides it: "48 blocks train". The claim says it, unless it is a
    `control`."""

    says: str
    check: Check
    control: bool = False

    @property
    def title(self) -> str:
        """What it says, after the word "Control" where it is one."""
        return f"Control: {self.says}" if self.control else self.says

    def sentence(self, labels: Labels) -> str:
        """The part as a sentence."""
        return f"{self.title}: {self.check.sentence(labels)}"

    def judge(self, numbers: Numbers, fallen: Numbers, drawn: Drawn | None = None) -> Judgement:
        """Its outcome; undecided where it would change if a run that still fell came down to the floor.

        `fallen` has those numbers again, as they would be then.
        """
        judgement = self.check.judge(numbers, drawn)
        names = [name for name in self.check.names if name in fallen]
        for values in product(*((numbers[name], fallen[name]) for name in names)):
            other = dict(zip(names, values, strict=True))
            if self.check.judge({**numbers, **other}, drawn).outcome != judgement.outcome:
                return Judgement(
                    "undecided", f"{judgement.evidence}; a run that it reads still fell"
                )
        return judgement

    def p_value(
        self, numbers: Numbers, fallen: Numbers, drawn: Drawn | None = None
    ) -> float | None:
        """The least error rate at which it would be decided as it is: 1 where it is undecided, None where no
        seed changes it. Of runs that still fell it takes the numbers as measured."""
        p = self.check.p_value(numbers, drawn)
        undecided = self.judge(numbers, fallen, drawn).outcome == "undecided"
        return 1.0 if p is not None and undecided else p


class Judged(NamedTuple):
    """A part and its judgement."""

    part: Part
    judgement: Judgement


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict: its kind, and each part with its judgement."""

    kind: Kind
    parts: tuple[Judged, ...]

    @property
    def outcomes(self) -> str:
        """The first letters of the parts' outcomes: "tfu"."""
        return "".join(judgement.outcome[0] for _, judgement in self.parts)

    @property
    def sentence(self) -> str:
        """The verdict with the number of parts: "holds in part (1 of 3 parts true, 2 undecided)"."""
        core, controls = _outcomes(self.parts)
        words = [f"{core.count(word)} {word}" for word in MARKS if word in core]
        failed = controls.count("false") if self.kind == "holds in part" else 0
        if len(words) == 1 and not failed:
            return self.kind
        count, word = words[0].split(" ", 1)
        parts = ", ".join(
            (f"{count} of {len(core)} part{'s' * (len(core) > 1)} {word}", *words[1:])
        )
        more = f"; {failed} of {len(controls)} control{'s' * (len(controls) > 1)} false"
        return f"{self.kind} ({parts}{more if failed else ''})"

    def lines(self) -> list[str]:
        """The parts as a list of ticks, crosses and dashes, one a line."""
        return [
            f"{MARKS[judgement.outcome]} {part.title}: {judgement.outcome}"
            f"{', worse by more' * _is_worse(part, judgement)} ({judgement.evidence})"
            for part, judgement in self.parts
        ]


def _is_worse(part: Part, judgement: Judgement) -> bool:
    """Whether "not worse" is false, which is said without the two negations."""
    return isinstance(part.check, NotWorse) and judgement.outcome == "false"


def _outcomes(parts: Sequence[Judged]) -> tuple[list[Outcome], list[Outcome]]:
    """The outcomes of what the claim says, and of its controls."""
    core, controls = (
        [judgement.outcome for part, judgement in parts if part.control is control]
        for control in (False, True)
    )
    return core, controls


def judge(
    rule: Sequence[Part],
    numbers: Numbers,
    fallen: Numbers | None = None,
    general: bool = False,
    drawn: Drawn | None = None,
) -> ClaimVerdict:
    """The verdict of a rule; `numbers` holds one list of seeds per name, and `fallen` those again that a
    run that still fell could change (see `Part.judge`). A `general` claim is contradicted by one false
    part."""
    parts = [Judged(part, part.judge(numbers, fallen or {}, drawn)) for part in rule]
    return verdict_of(parts, general)


def verdict_of(parts: Sequence[Judged], general: bool = False) -> ClaimVerdict:
    """The verdict of parts that are judged."""
    core, controls = (set(outcomes) for outcomes in _outcomes(parts))
    kind: Kind = "undecided"
    if "false" in core and (general or "true" not in core):
        kind = "contradicted"
    elif core == {"true"}:
        kind = "holds in part" if "false" in controls else "holds"
    elif "true" in core and core & {"false", "no difference"}:
        kind = "holds in part"
    elif core == {"no difference"}:
        kind = "no difference found"
    return ClaimVerdict(kind, tuple(parts))


def value_sentence(values: Sequence[float], form: str, seeds: bool = True) -> str:
    """Median and range, optionally with the number of seeds: "1.21 (1.20 to 1.23, 3 seeds)". No range
    if all seeds print the same."""
    n = f"{len(values)} seed{'s' * (len(values) != 1)}" if seeds else ""
    if any(math.isnan(x) for x in values):
        middle, ends = "not a number", ""
    else:
        middle, low, high = (_printed(f(values), form) for f in (median, min, max))
        ends = "" if low == high else f"{low} to {high}"
    inside = ", ".join(filter(None, (ends, n)))
    return f"{middle} ({inside})" if inside else middle


def _printed(x: float, form: str) -> str:
    if math.isinf(x):
        return "not reached" if x > 0 else "-inf"
    text = format(x, form)
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _few(values: Sequence[float]) -> Judgement | None:
    n = len(values)
    return Judgement("undecided", f"{n} seeds, needed are {SEEDS}") if n < SEEDS else None


def _variance(drawn: NDArray[Any]) -> float:
    """Of the mean over the seeds, from draws of them; n / (n - 1) makes up for drawing from n."""
    n = drawn.shape[1]
    return float(np.var(np.mean(drawn, axis=1))) * n / (n - 1)


def _over(a: float, b: float) -> float:
    return a / b if b else math.inf


def _placed(mean: Interval, low: float, high: float) -> Outcome:
    if low <= mean.low and mean.high <= high:
        return "true"
    return "false" if mean.high < low or mean.low > high else "undecided"


ROUNDING = 1e-9
"""A mean that is this share of its interval's width or less is 0 up to rounding."""


def _ends(mean: Interval, which: str = "") -> str:
    """A mean with its interval, 95 % where `which` does not say otherwise."""
    width = mean.high - mean.low
    middle = 0.0 if abs(mean.mean) <= ROUNDING * width else mean.mean
    return f"{middle:.3g} ({which}{mean.low:.3g} to {mean.high:.3g}, {mean.n} seeds)"


def _p_of_mean(
    values: Sequence[float],
    limits: Sequence[float],
    ratio: bool = False,
    variance: float | None = None,
) -> float:
    """Two-sided, of Student's test of a mean against the nearest of some limits; with `ratio` of the
    geometric mean. 1 where the values have no interval."""
    if len(values) < SEEDS or interval(values, ratio, variance=variance) is None:
        return 1.0
    logs = [math.log(x) for x in values] if ratio else list(values)
    ends = [
        math.log(x) if ratio else x for x in limits if math.isfinite(x) and (x > 0 or not ratio)
    ]
    distance = min(abs(fmean(logs) - end) for end in ends)
    error = stdev(logs) / math.sqrt(len(logs)) if variance is None else math.sqrt(variance)
    return p_value(distance, error, len(logs) - 1)


def _limits(low: float, high: float) -> str:
    ends = [low > -math.inf, high < math.inf]
    if all(ends):
        return f"is {low:g}" if low == high else f"lies from {low:g} to {high:g}"
    return f"is at least {low:g}" if ends[0] else f"is at most {high:g}"
