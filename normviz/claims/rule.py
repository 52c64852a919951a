"""Pass rules: the conditions on a claim's numbers, and the verdict that follows.

A rule has parts, each with its scope ("with 24 blocks"). A part is true or false only if the seeds
agree: every seed meets a threshold, or all miss it on the same side; two arms differ if
`runs.statistics.compare` finds a paired difference. Otherwise the part is open. The verdict is

    holds                every part is true
    holds in part        some parts are true, others false or open
    contradicted         no part is true, at least one is false
    not distinguishable  all parts are open

A number that is not finite meets no threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from ..runs.statistics import compare

Outcome = Literal["true", "false", "open"]
Kind = Literal["holds", "holds in part", "contradicted", "not distinguishable"]
Numbers = Mapping[str, Sequence[float]]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Between:
    """Every seed's number lies from `low` to `high`."""

    name: str
    low: float = -math.inf
    high: float = math.inf

    def outcome(self, numbers: Numbers) -> Outcome:
        """true if every seed is inside, false if all miss on the same side, else open."""
        values = numbers[self.name]
        if all(self.low <= x <= self.high for x in values):
            return "true"
        # If seeds miss it on both sides, it is open. A number that is not finite always misses it.
        below, above = (
            all(beyond(x) or not math.isfinite(x) for x in values)
            for beyond in (lambda x: x < self.low, lambda x: x > self.high)
        )
        return "false" if below or above else "open"

    def sentence(self, labels: Labels) -> str:
        ends = [self.low > -math.inf, self.high < math.inf]
        if all(ends):
            text = f"lies from {self.low:g} to {self.high:g}"
            text = f"is {self.low:g}" if self.low == self.high else text
        else:
            text = f"is at least {self.low:g}" if ends[0] else f"is at most {self.high:g}"
        return f"{labels[self.name]} {text} in every seed"


@dataclass(frozen=True)
class Less:
    """One number is less than another in every pair of seeds; false only if it is greater."""

    name: str
    other: str

    def outcome(self, numbers: Numbers) -> Outcome:
        """true or false by the sign of the paired difference, open without a difference."""
        pairs = list(zip(numbers[self.name], numbers[self.other], strict=True))
        finite = [(a, b) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
        if len(finite) < len(pairs):
            return "open"
        found = compare(*map(list, zip(*finite, strict=True)))
        if not found.differs:
            return "open"
        return "true" if found.difference < 0 else "false"

    def sentence(self, labels: Labels) -> str:
        return (
            f"{labels[self.name]} is less than {labels[self.other]} (same sign in every pair of "
            "seeds, 95 % interval without zero)"
        )


@dataclass(frozen=True)
class Same:
    """Two numbers are equal up to `within`, by the 95 % interval of their paired difference."""

    name: str
    other: str
    within: float

    def outcome(self, numbers: Numbers) -> Outcome:
        """true or false if the interval is inside or outside of `within`, else open."""
        found = compare(numbers[self.name], numbers[self.other])
        if -self.within < found.low and found.high < self.within:
            return "true"
        return "false" if found.low > self.within or found.high < -self.within else "open"

    def sentence(self, labels: Labels) -> str:
        return (
            f"{labels[self.name]} equals {labels[self.other]} up to {self.within:g} (95 % interval "
            "of the paired difference)"
        )


@dataclass(frozen=True)
class All:
    """All of these checks together."""

    checks: tuple[Between | Less | Same, ...]

    def outcome(self, numbers: Numbers) -> Outcome:
        """true if all checks are, false if one is, else open."""
        found = [check.outcome(numbers) for check in self.checks]
        if "false" in found:
            return "false"
        return "open" if "open" in found else "true"

    def sentence(self, labels: Labels) -> str:
        return "; and ".join(check.sentence(labels) for check in self.checks)


Check = Between | Less | Same | All


@dataclass(frozen=True)
class Part:
    """A check, and the scope in which the claim holds if it is true: "with 24 blocks"."""

    where: str
    check: Check

    def sentence(self, labels: Labels) -> str:
        """The part as a sentence."""
        return f"{self.where}: {self.check.sentence(labels)}"


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict: its kind, and the scope and outcome of every part."""

    kind: Kind
    parts: tuple[tuple[str, Outcome], ...]

    @property
    def sentence(self) -> str:
        """The verdict as a sentence: "holds in part: for Pre-LN; not for Post-LN"."""
        true, false, open_ = (
            [where for where, it in self.parts if it == outcome]
            for outcome in ("true", "false", "open")
        )
        if self.kind != "holds in part":
            return self.kind
        text = f"holds in part: {_listed(true)}"
        text += f"; not {_listed(false)}" if false else ""
        return text + (f"; not distinguishable {_listed(open_)}" if open_ else "")


def judge(rule: Sequence[Part], numbers: Numbers) -> ClaimVerdict:
    """The verdict of a rule; `numbers` holds one list of seeds per name."""
    parts: tuple[tuple[str, Outcome], ...] = tuple(
        (part.where, part.check.outcome(numbers)) for part in rule
    )
    found = [outcome for _, outcome in parts]
    kind: Kind = "holds in part"
    if set(found) == {"true"}:
        kind = "holds"
    elif "true" not in found:
        kind = "contradicted" if "false" in found else "not distinguishable"
    return ClaimVerdict(kind, parts)


def value_sentence(values: Sequence[float], form: str, seeds: bool = True) -> str:
    """Median and range, optionally with the number of seeds: "1.21 (1.20 to 1.23, 3 seeds)". No range
    if all seeds print the same."""
    n = f"{len(values)} seed{'s' * (len(values) != 1)}" if seeds else ""
    if any(not math.isfinite(x) for x in values):
        middle, ends = "not finite", ""
    else:
        middle, low, high = (_printed(f(values), form) for f in (median, min, max))
        ends = "" if low == high else f"{low} to {high}"
    inside = ", ".join(filter(None, (ends, n)))
    return f"{middle} ({inside})" if inside else middle


def _printed(x: float, form: str) -> str:
    text = format(x, form)
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
