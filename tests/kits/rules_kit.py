"""How often the checks of claims are wrong, and how often they decide, on simulated seeds.

Each row draws the numbers of a claim from a known distribution. A check is
wrong if it says true where the claim is false of the distribution, or false where it is true; on the limit
itself both words are wrong. Rows in which the claim is true must be called true more often with more seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from normviz.studies.claims import Claim
from normviz.studies.claims.choice import distances, filled, redrawn
from normviz.studies.claims.evidence import HELD_OUT
from normviz.studies.claims.numbers import tuned
from normviz.studies.claims.record import Curve
from normviz.studies.claims.rule import (
    Between,
    Correlated,
    Less,
    LessInMost,
    Most,
    NotWorse,
    Same,
    Simple,
)

Floats = NDArray[np.float64]
Drawn = dict[str, Floats]


@dataclass(frozen=True)
class Case:
    """A check, a distribution [draws, seeds] of its numbers, and what is true of the distribution."""

    label: str
    check: Simple
    draw: Callable[[Generator, tuple[int, int]], Drawn]
    truth: str


def normal(mean: float) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Numbers around `mean` with standard deviation 1."""
    return lambda rng, shape: {"a": rng.normal(mean, 1, shape)}


def skewed(mean: float) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Lognormal numbers with geometric mean `mean`, a factor of e for each standard deviation."""
    return lambda rng, shape: {"a": mean * np.exp(rng.normal(0, 1, shape))}


def runs(share: float) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Final losses of runs of which this share trains: 1.2 or 3.3, with little scatter."""
    return lambda rng, shape: {
        "a": np.where(rng.random(shape) < share, 1.2, 3.3) + rng.normal(0, 0.02, shape)
    }


def pairs(difference: float, noise: float = 1.0) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Two arms that share what a seed does to both, with a paired difference of this mean."""

    def draw(rng: Generator, shape: tuple[int, int]) -> Drawn:
        shared = rng.normal(0, 3, shape)
        return {"a": shared + difference + rng.normal(0, noise, shape), "b": shared}

    return draw


def two_runs(first: float, second: float) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Final losses of two arms of which these shares train."""
    return lambda rng, shape: {
        "a": runs(first)(rng, shape)["a"],
        "b": runs(second)(rng, shape)["a"],
    }


def grid(share: float, reverse: float = 0.0) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Largest rates on a grid: in this share of pairs one step less, in `reverse` one step more."""

    def draw(rng: Generator, shape: tuple[int, int]) -> Drawn:
        u = rng.random(shape)
        a = np.where(u < share, 0.003, np.where(u > 1 - reverse, 0.03, 0.01))
        return {"a": a, "b": np.full(shape, 0.01)}

    return draw


RATES = (0.001, 0.002, 0.003, 0.004, 0.005)
TUNED = Claim(
    "T", "", "", "",
    {arm: {"scheme": "pre", "lr": ",".join(map(str, RATES)), "steps": "10"} for arm in "ab"},
    {**tuned("a", "a"), **tuned("b", "b")}, (), "", Curve("lr", HELD_OUT),
)  # fmt: skip


def at_rates(difference: float, *means: float) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Two arms at five rates with these means, and standard deviation 1; the first differs by this much."""
    return lambda rng, shape: {
        f"{arm} at {rate:g}": rng.normal(mean + apart, 1, shape)
        for arm, apart in (("a", difference), ("b", 0.0))
        for rate, mean in zip(RATES, means, strict=True)
    }


def spreads(ratio: float, skew: bool = False) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Distances from the median of two arms, of which the second has this many times the spread; with `skew`
    of lognormal numbers."""

    def draw(rng: Generator, shape: tuple[int, int]) -> Drawn:
        first, second = rng.normal(0, 1, (2, *shape))
        if skew:
            first, second = np.exp(first), np.exp(second)
        return {"a": distances(first), "b": distances(ratio * second)}

    return draw


def correlated(rank: float, placements: int) -> Callable[[Generator, tuple[int, int]], Drawn]:
    """Rank correlations over placements drawn from those of which it is `rank`; the seeds repeat them."""

    def draw(rng: Generator, shape: tuple[int, int]) -> Drawn:
        r = 2 * np.sin(np.pi * rank / 6)  # of normal numbers with this rank correlation
        x, z = rng.normal(0, 1, (2, shape[0], placements))
        ranks = [v.argsort(axis=1).argsort(axis=1) for v in (x, r * x + np.sqrt(1 - r * r) * z)]
        apart = ((ranks[0] - ranks[1]) ** 2).sum(axis=1)
        found = 1 - 6 * apart / (placements * (placements**2 - 1))
        return {"a": np.repeat(found[:, None], shape[1], axis=1)}

    return draw


CASES = (
    Case("mean 0.5 sd inside", Between("a", low=0), normal(0.5), "true"),
    Case("mean 1 sd inside", Between("a", low=0), normal(1.0), "true"),
    Case("mean on the limit", Between("a", low=0), normal(0.0), "limit"),
    Case("mean 1 sd outside", Between("a", low=0), normal(-1.0), "false"),
    Case("ratio twice the limit", Between("a", low=1, ratio=True), skewed(2.0), "true"),
    Case("ratio on the limit", Between("a", low=1, ratio=True), skewed(1.0), "limit"),
    Case("all runs train", Most("a", high=2.2), runs(1.0), "true"),
    Case("9 of 10 runs train", Most("a", high=2.2), runs(0.9), "true"),
    Case("half of the runs train", Most("a", high=2.2), runs(0.5), "limit"),
    Case("1 of 10 runs trains", Most("a", high=2.2), runs(0.1), "false"),
    Case("less by 1 sd", Less("a", "b"), pairs(-1.0), "true"),
    Case("equal", Less("a", "b"), pairs(0.0), "limit"),
    Case("equal, half of both train", Less("a", "b"), two_runs(0.5, 0.5), "limit"),
    Case("equal, 9 of 10 of both train", Less("a", "b"), two_runs(0.9, 0.9), "limit"),
    Case("9 of 10 train, 1 of 10", Less("a", "b"), two_runs(0.9, 0.1), "true"),
    Case("a grid step less in 9 of 10", LessInMost("a", "b"), grid(0.9), "true"),
    Case("less and greater as often", LessInMost("a", "b"), grid(0.5, 0.5), "limit"),
    Case("not worse, equal", NotWorse("a", "b", 0.5), pairs(0.0, 0.4), "true"),
    Case("worse by the limit", NotWorse("a", "b", 0.5), pairs(0.5, 0.4), "limit"),
    Case("same, equal", Same("a", "b", 0.5), pairs(0.0, 0.4), "true"),
    Case("correlation on the limit", Correlated("a", high=0.5, placements=8), correlated(0.5, 8), "limit"),
    Case("tuned, rates alike", Less("a", "b"), at_rates(0, 0, 0, 0, 0, 0), "limit"),
    Case("tuned, two rates alike", Less("a", "b"), at_rates(0, 1.2, 0.3, 0, 0.1, 1.5), "limit"),
    Case("tuned, one rate best", Less("a", "b"), at_rates(0, 8, 3, 0, 3, 8), "limit"),
    Case("tuned, less by 2 sd", Less("a", "b"), at_rates(-2, 1.2, 0.3, 0, 0.1, 1.5), "true"),
    Case("spreads alike", Less("a", "b"), spreads(1.0), "limit"),
    Case("spreads alike, skewed", Less("a", "b"), spreads(1.0, skew=True), "limit"),
    Case("three times the spread", Less("a", "b"), spreads(3.0), "true"),
    Case("apart by the limit", Same("a", "b", 0.5), pairs(0.5, 0.4), "limit"),
)  # fmt: skip


def shares(case: Case, seeds: int, draws: int) -> dict[str, float]:
    """The share of each outcome."""
    rng = np.random.default_rng([seeds, *case.label.encode()])
    drawn = case.draw(rng, (draws, seeds))
    rows = [{name: values[k].tolist() for name, values in drawn.items()} for k in range(draws)]
    outcomes = [_outcome(case, row) for row in rows]
    return {word: outcomes.count(word) / draws for word in set(outcomes)}


def _outcome(case: Case, row: dict[str, list[float]]) -> str:
    if row.keys() != set(TUNED.read):
        return case.check.judge(row).outcome
    numbers = filled(TUNED, row)
    return case.check.judge(numbers, redrawn(TUNED, numbers)).outcome


def wrong(case: Case, found: dict[str, float]) -> float:
    """The share of wrong words among these shares."""
    words = {"true": ("false",), "false": ("true",), "limit": ("true", "false")}[case.truth]
    return sum(found.get(word, 0.0) for word in words)
