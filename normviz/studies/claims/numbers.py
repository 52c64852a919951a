"""The numbers of a claim, one value per seed: of a cell, of an arm, and of two of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..maps.summary import wortsman
from .evidence import FINAL, HELD_OUT, CellResult, Quantity, Sample, lifetime, recording_of, trains
from .record import ChosenRate, Number, Tuned

Of = Callable[[Sample], float]
Floats = NDArray[Any]


def value(arm: str, quantity: Quantity, **where: object) -> Of:
    """A quantity of the one cell with these settings."""
    return lambda sample: quantity.of(sample.run(arm, **where))


def slope(arm: str, x: str, quantity: Quantity, start: float = 0, **where: object) -> Of:
    """Exponent p of the power law quantity ~ x^p: least squares of the logarithms over the cells, those with
    x of `start` or more."""

    def of(sample: Sample) -> float:
        cells = [c for c in sample.runs(arm, **where) if getattr(c.config, x) >= start]
        return log_slope([getattr(c.config, x) for c in cells], [quantity.of(c) for c in cells])

    return of


def layer_slope(arm: str, y: str, x: str, step: int, **where: object) -> Of:
    """Exponent p of y ~ x^p over the blocks of one run, for two probes."""

    def of(sample: Sample) -> float:
        recording = recording_of(sample.run(arm, **where))
        layers = range(1, recording.depth + 1)
        return log_slope(
            [recording.at(x, step, b) for b in layers], [recording.at(y, step, b) for b in layers]
        )

    return of


def growth_ratio(arm: str, what: Literal["power", "misfit"], **where: object) -> Of:
    """Of the stream's variance over the blocks of one run, at its last step: the exponent of a power law,
    or the squared error of an exponential over that of the power law, both fitted to the logarithm."""

    def of(sample: Sample) -> float:
        recording = recording_of(sample.run(arm, **where))
        blocks = np.arange(1, recording.depth + 1)
        logs = np.log([recording.at("stream_rms", recording.last, int(b)) ** 2 for b in blocks])
        power, error = _fitted(np.log(blocks), logs)
        return power if what == "power" else _fitted(blocks, logs)[1] / error

    return of


def _fitted(xs: Floats, ys: Floats) -> tuple[float, float]:
    """Slope and sum of squared errors of the least-squares line."""
    slope, start = np.polyfit(xs, ys, 1)
    return float(slope), float(np.sum((ys - slope * xs - start) ** 2))


def largest(arm: str, name: str, **where: object) -> Of:
    """The largest value of a setting that trains; 0 where none does."""
    return lambda sample: max(
        (float(getattr(run.config, name)) for run in sample.runs(arm, **where) if trains(run)),
        default=0.0,
    )


def largest_rate(arm: str, **where: object) -> Of:
    """The largest learning rate that trains; 0 where none does."""
    return largest(arm, "lr", **where)


def best_rate(arm: str, **where: object) -> Of:
    """The rate with the lowest held-out loss on the seed itself. A number to be compared, and no rate to
    judge a loss at."""
    return lambda sample: (
        min(sample.runs(arm, **where), key=lambda run: (HELD_OUT.of(run), run.config.lr)).config.lr
    )


def depth_slope(of_depth: Mapping[int, Of]) -> Of:
    """Exponent p of the power law y ~ L^p, by least squares, of a number for each depth L; NaN where
    one is 0."""
    return lambda sample: log_slope(list(of_depth), [of(sample) for of in of_depth.values()])


def separation(quantity: Quantity, *arms: str) -> Of:
    """The area under the curve (AUC) within an arm, averaged over all or these arms, of those that have runs
    of both kinds: the share of pairs, of a run that trains and one that does not, in which the quantity is
    greater for the one that trains. Equal values count half. NaN where no arm has both."""

    def of(sample: Sample) -> float:
        areas = []
        for arm in arms or sample.arms:
            runs = _judged(sample.arms[arm], quantity)
            good, bad = ([x for x, it in runs if it is kind] for kind in (True, False))
            if good and bad:
                areas.append(fmean((a > b) + (a == b) / 2 for a in good for b in bad))
        return fmean(areas) if areas else math.nan

    return of


def wrong_elsewhere(quantity: Quantity) -> Of:
    """The share of a seed's runs that the best cut of the other arms' runs gets wrong (`left_out`)."""

    def of(sample: Sample) -> float:
        arms = [_judged(runs, quantity) for runs in sample.arms.values()]
        return sum(map(len, left_out(arms))) / sum(map(len, arms))

    return of


def wrong_by_majority(*names: str) -> Of:
    """The share of a seed's runs that are not as most are of the runs that share these settings with them,
    and are among those."""

    def of(sample: Sample) -> float:
        groups = defaultdict[tuple[Any, ...], list[bool]](list)
        for run in (run for runs in sample.arms.values() for run in runs):
            groups[tuple(getattr(run.config, name) for name in names)].append(trains(run))
        wrong = sum(min(sum(kinds), len(kinds) - sum(kinds)) for kinds in groups.values())
        return wrong / sum(map(len, groups.values()))

    return of


def _judged(runs: Sequence[CellResult], quantity: Quantity) -> list[tuple[float, bool]]:
    """The quantity of each run, and whether it trains."""
    return [(quantity.of(run), trains(run)) for run in runs]


def left_out(arms: Sequence[Sequence[tuple[float, bool]]]) -> list[list[int]]:
    """Of each arm the indices of its runs (a number, and whether it trains) that a cut gets wrong: that one
    which is wrong for the fewest runs of the other arms."""
    wrong = []
    for k, arm in enumerate(arms):
        cut = best_cut([run for i, other in enumerate(arms) if i != k for run in other])
        wrong.append([i for i, (x, good) in enumerate(arm) if good != (x >= cut)])
    return wrong


def best_cut(runs: Sequence[tuple[float, bool]]) -> float:
    """The largest number such that to say of runs (a number, and whether it trains) that those from it on
    train is wrong for the fewest."""
    cut, wrong = math.inf, sum(good for _, good in runs)
    fewest = wrong
    for x, same in groupby(sorted(runs, reverse=True), key=lambda run: run[0]):
        wrong += sum(-1 if good else 1 for _, good in same)
        if wrong < fewest:
            cut, fewest = x, wrong
    return cut


def how_many_train(arm: str, **where: object) -> Of:
    """How many of the cells with these settings train."""
    return lambda sample: float(sum(trains(run) for run in sample.runs(arm, **where)))


def over(first: Of, second: Of) -> Of:
    """One number of a seed over another."""
    return lambda sample: first(sample) / second(sample)


def minus(first: Of, second: Of) -> Of:
    """One number of a seed minus another."""
    return lambda sample: first(sample) - second(sample)


def log_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Least-squares slope of log y over log x; NaN where a number is not above 0 and finite."""
    if len(xs) < 2 or not all(0 < v < math.inf for v in (*xs, *ys)):
        return math.nan
    u, v = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_u, mean_v = fmean(u), fmean(v)
    spread = sum((a - mean_u) ** 2 for a in u)
    return sum((a - mean_u) * (b - mean_v) for a, b in zip(u, v, strict=True)) / spread


HALF = 2.21
"""Half of the way from chance to the floor of the Markov task, in nats: below it a run trains."""


def final(arm: str, words: str, **where: object) -> Number:
    """The final loss of one cell."""
    return Number(f"{FINAL.label}, {words}", value(arm, FINAL, **where), unit="nats")


def held_out(arm: str, words: str, **where: object) -> Number:
    """The held-out loss of one cell at its end, to three digits."""
    return Number(f"{HELD_OUT.label}, {words}", value(arm, HELD_OUT, **where), ".3f", "nats")


def tuned(
    arm: str, words: str, quantity: Quantity = HELD_OUT, key: str = "", **where: object
) -> dict[str, Number]:
    """An arm's rate that is chosen on the other seeds, and the quantity at it; named `key` or as the arm."""
    name = key or arm
    form, unit = (".3f", "nats") if quantity.unit == "nats" else (".0f", quantity.unit)
    return {
        f"{name}_rate": Number(f"rate chosen on other seeds, {words}", ChosenRate(name), "g"),
        name: Number(
            f"{quantity.label}, at the chosen rate, {words}",
            Tuned(arm, quantity, where),
            form,
            unit,
        ),
    }


def at_rate_of(name: str, arm: str, words: str, quantity: Quantity, **where: object) -> Number:
    """A quantity of an arm at the rate that is chosen for its tuned number `name` of the same cells."""
    form, unit = (".3f", "nats") if quantity.unit == "nats" else (".2f", "")
    label = f"{quantity.label}, at the chosen rate, {words}"
    return Number(label, Tuned(arm, quantity, where, name), form, unit)


def steps_until(arm: str, words: str, level: float, **where: object) -> Number:
    """The steps of one cell until the mean of ten losses is at most `level` nats."""
    return Number(
        f"steps to a loss of {level:g}, {words}",
        value(arm, lifetime(level), **where),
        ".0f",
        "steps",
    )


def rate(arm: str, words: str, **where: object) -> Number:
    """The largest rate of an arm that trains."""
    return Number(f"the largest rate that trains, {words}", largest_rate(arm, **where), "g")


def sensitivity(arm: str, words: str) -> Number:
    """Learning-rate sensitivity of Wortsman et al. 2023 over the arm's rates."""

    def of(sample: Sample) -> float:
        return wortsman([run.point for run in sample.runs(arm)])[0]

    return Number(f"learning-rate sensitivity, {words}", of, ".3f", "nats")
