"""What the runs of a claim say: each run's numbers, and the runs of one seed arm by arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ..config import RunConfig
from ..story.told import Told
from ..sweep.points import Point


@dataclass(frozen=True)
class Seen:
    """One cell: what the store has of its run, or what a lab measured of it instead."""

    config: RunConfig
    told: Told | None = None
    point: Point | None = None
    lab: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Quantity:
    """A number of one cell."""

    label: str
    unit: str
    of: Callable[[Seen], float]

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True)
class Sample:
    """The cells of one seed by arm, each arm's in the order of its axes."""

    arms: Mapping[str, Sequence[Seen]]

    def runs(self, arm: str, **where: object) -> list[Seen]:
        """The cells of an arm that have these settings."""
        return [
            one
            for one in self.arms[arm]
            if all(getattr(one.config, name) == value for name, value in where.items())
        ]

    def run(self, arm: str, **where: object) -> Seen:
        """The one cell of an arm that has these settings. Raises ValueError for none or several."""
        found = self.runs(arm, **where)
        if len(found) != 1:
            raise ValueError(f"{len(found)} cells of {arm!r} have {where}, expected is one")
        return found[0]


def _told(seen: Seen) -> Told:
    assert seen.told is not None
    return seen.told


def _point(seen: Seen) -> Point:
    assert seen.point is not None
    return seen.point


FINAL = Quantity("final loss, at most chance", "nats", lambda one: _point(one).capped)
"""Mean loss of the last tenth of the steps; chance where it diverged or ended above."""
FIRST = Quantity("loss at initialisation", "nats", lambda one: _point(one).first)


def at(probe: str, step: int, layer: int) -> Quantity:
    """A probe of one layer (-1 the last block) at a recorded step; step -1 is the last one.

    A cell of a sweep records step 0, powers of two and the last step; a run of the duel all of the
    first 32 and every third after: of the later steps 32 and 128 are in both.
    """

    def of(one: Seen) -> float:
        told = _told(one)
        return told.at(probe, told.last if step < 0 else step, layer)

    return Quantity(f"{probe}, layer {'L' if layer < 0 else layer}", "", of)


def quotient(probe: str, step: int, above: int, below: int) -> Quantity:
    """A probe of layer `above` over that of layer `below`."""
    over, under = at(probe, step, above), at(probe, step, below)

    def of(one: Seen) -> float:
        bottom = under.of(one)
        return over.of(one) / bottom if bottom else math.inf

    return Quantity(f"{probe}, layer {above} over layer {below}", "", of)


def greatest(probe: str) -> Quantity:
    """The largest value of a probe in any block at the last recorded step."""

    def of(one: Seen) -> float:
        told = _told(one)
        return max(told.at(probe, told.last, layer) for layer in range(1, told.depth + 1))

    return Quantity(f"largest {probe}", "", of)


def squared(quantity: Quantity, label: str) -> Quantity:
    """Its square: a variance of an RMS."""
    return Quantity(label, "", lambda one: quantity.of(one) ** 2)


def renamed(quantity: Quantity, label: str, unit: str = "") -> Quantity:
    """The same under another name."""
    return Quantity(label, unit, quantity.of)


def lab(name: str, label: str, unit: str = "") -> Quantity:
    """What a lab measured."""
    return Quantity(label, unit, lambda one: one.lab[name])


# What one seed gives


Of = Callable[[Sample], float]


def value(arm: str, quantity: Quantity, **where: object) -> Of:
    """A quantity of the one cell with these settings."""
    return lambda sample: quantity.of(sample.run(arm, **where))


def slope(arm: str, x: str, quantity: Quantity, **where: object) -> Of:
    """Exponent p of the power law quantity ~ x^p: least squares of the logarithms over the cells."""

    def of(sample: Sample) -> float:
        cells = sample.runs(arm, **where)
        return log_slope([getattr(c.config, x) for c in cells], [quantity.of(c) for c in cells])

    return of


def layer_slope(arm: str, y: str, x: str, step: int, **where: object) -> Of:
    """Exponent p of y ~ x^p over the blocks of one run, for two probes."""

    def of(sample: Sample) -> float:
        told = _told(sample.run(arm, **where))
        layers = range(1, told.depth + 1)
        return log_slope(
            [told.at(x, step, b) for b in layers], [told.at(y, step, b) for b in layers]
        )

    return of


def best(arm: str, **where: object) -> Of:
    """The lowest final loss among the cells with these settings, at most chance."""
    return lambda sample: min(FINAL.of(one) for one in sample.runs(arm, **where))


def largest_rate(arm: str, **where: object) -> Of:
    """The largest learning rate that trains; 0 where none does."""
    return lambda sample: max(
        (one.config.lr for one in sample.runs(arm, **where) if _point(one).trains), default=0.0
    )


def training(arm: str, **where: object) -> Of:
    """How many of the cells with these settings train, as a share."""
    return lambda sample: fmean(_point(one).trains for one in sample.runs(arm, **where))


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
