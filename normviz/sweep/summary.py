"""What a sweep says: frontier, learning-rate sensitivity beside the best loss, and who differs.

**Learning-rate sensitivity** is that of Wortsman et al. 2023 (arXiv:2309.14322, section 2.2): the mean
over the learning rates of min(l, l0) - l*, where l is the final loss at a rate, l0 the loss at
initialisation (a diverged run counts as l0) and l* the lowest final loss over the rates. It has two
traps, so it never stands alone here:

* a scheme that fails at every rate scores near zero: `fails`, and the best loss beside it says so;
* a low rate that only lacked steps counts as sensitivity: `undertrained` names such rates.

A cell that was stopped early because it was flat at chance has no final loss. Its loss at the stop
stands in, and `stood_in` counts such cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from .grid import Grid
from .points import Point, trained_below
from .stats import Comparison, Spread, compare, spread

Place = tuple[tuple[str, Any], ...]
"""Fields and values of the axes that a row stands for."""


@dataclass(frozen=True)
class Sensitivity:
    """Over the learning rates `rates`, for the settings `place`; each spread is over seeds.

    value         mean of min(l, l0) - l*, nats
    best          l*, nats, and `best_rate` the rate of the median seed's lowest
    excess        l* above the floor, nats; None where the floor is unknown
    fails         no rate trains: the value says nothing
    undertrained  rates at which the loss was still falling
    stood_in      cells that were stopped early
    diverged      cells that count as l0
    """

    place: Place
    rates: tuple[float, ...]
    value: Spread
    best: Spread
    best_rate: float
    excess: Spread | None
    fails: bool
    undertrained: tuple[float, ...]
    stood_in: int
    diverged: int


@dataclass(frozen=True)
class Edge:
    """The largest learning rate that trains at a place, by the median over seeds; None where none."""

    place: Place
    rate: float | None
    is_last: bool
    """Whether it is the largest rate that was tried: the frontier may lie beyond."""


def sensitivity(grid: Grid, points: Iterable[Point]) -> list[Sensitivity]:
    """One row for each combination of the other axes whose rates have all been run."""
    axis = grid.axis("lr")
    if axis is None:
        return []
    rows = []
    for place, group in by_place(grid, points, "lr").items():
        seeds: dict[int, list[Point]] = defaultdict(list)
        for one in group:
            seeds[one.cell.seed].append(one)
        whole = [ones for ones in seeds.values() if len(ones) == len(axis.values)]
        if whole:
            rows.append(_sensitivity(place, axis.values, whole))
    return rows


def _sensitivity(
    place: Place, rates: tuple[float, ...], seeds: Sequence[Sequence[Point]]
) -> Sensitivity:
    values, bests = zip(*(wortsman(ones) for ones in seeds), strict=True)
    flat = [one for ones in seeds for one in ones]
    at = {rate: [p for p in flat if p.cell.config.lr == rate] for rate in rates}
    floor = flat[0].floor
    return Sensitivity(
        place=place,
        rates=rates,
        value=spread(values),
        best=spread(bests),
        best_rate=min(rates, key=lambda rate: median(p.capped for p in at[rate])),
        excess=None if floor is None else spread([best - floor for best in bests]),
        fails=all(best > trained_below(flat[0].chance, floor) for best in bests),
        undertrained=tuple(r for r in rates if sum(p.falling for p in at[r]) * 2 > len(at[r])),
        stood_in=sum(p.kind == "flat" for p in flat),
        diverged=sum(p.is_lost for p in flat),
    )


def wortsman(points: Sequence[Point]) -> tuple[float, float]:
    """(sensitivity, lowest final loss) of one seed's runs, one a learning rate."""
    ended = [p.first if p.is_lost or not np.isfinite(p.loss) else p.loss for p in points]
    lowest = min(ended)
    return fmean(min(x, p.first) - lowest for x, p in zip(ended, points, strict=True)), lowest


def frontier(grid: Grid, points: Iterable[Point]) -> list[Edge]:
    """The largest learning rate that trains, for each combination of the other axes."""
    axis = grid.axis("lr")
    if axis is None:
        return []
    edges = []
    for place, group in by_place(grid, points, "lr").items():
        rates: dict[float, list[Point]] = defaultdict(list)
        for one in group:
            rates[one.cell.config.lr].append(one)
        good = [rate for rate, ones in rates.items() if trains(ones)]
        edges.append(
            Edge(place, max(good, default=None), max(good, default=None) == axis.values[-1])
        )
    return edges


def trains(seeds: Sequence[Point]) -> bool:
    """Whether the median over seeds trains."""
    first = seeds[0]
    return median(p.capped for p in seeds) <= trained_below(first.chance, first.floor)


def by_place(grid: Grid, points: Iterable[Point], *without: str) -> dict[Place, list[Point]]:
    """Points by their values on all axes but those named."""
    groups: dict[Place, list[Point]] = defaultdict(list)
    for one in points:
        place = tuple(
            (axis.field, axis.values[i])
            for axis, i in zip(grid.axes, one.cell.at, strict=True)
            if axis.field not in without
        )
        groups[place].append(one)
    return dict(groups)


def best_over_rates(points: Iterable[Point]) -> dict[int, float]:
    """For each seed the lowest loss over whatever else differs, capped at chance."""
    best: dict[int, float] = {}
    for one in points:
        best[one.cell.seed] = min(best.get(one.cell.seed, np.inf), one.capped)
    return best


def against(first: Iterable[Point], second: Iterable[Point]) -> Comparison | None:
    """Two groups by their lowest losses, paired by seed; None where they share none."""
    a, b = best_over_rates(first), best_over_rates(second)
    shared = sorted(a.keys() & b.keys())
    return compare([a[k] for k in shared], [b[k] for k in shared]) if shared else None
