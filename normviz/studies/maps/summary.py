"""The findings of a sweep, as numbers, as sentences for the terminal and the page, and as one tidy table.

Spreads and comparisons over seeds are those of `runs.statistics`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np
import pandas as pd

from ...formats import listed
from ...runs.statistics import Comparison, Spread, compare, spread
from .grid import Cell, Grid
from .points import Point, trained_below

# Learning-rate sensitivity, frontier, and the comparison of two arms.

Place = tuple[tuple[str, Any], ...]
"""Fields and values of the axes that name a row."""


@dataclass(frozen=True)
class Sensitivity:
    """Over the learning rates `rates`, for the settings `place`; each spread is over seeds.

    value         mean of min(l, l0) - l*, nats
    best          l*, nats, and `best_rate` the rate of the median seed's lowest
    excess        l* above the floor, nats; None where the floor is unknown
    fails         no rate trains: the value says nothing
    falling       rates at which the loss was still falling
    diverged      cells that count as l0
    """

    place: Place
    rates: tuple[float, ...]
    value: Spread
    best: Spread
    best_rate: float
    excess: Spread | None
    fails: bool
    falling: tuple[float, ...]
    diverged: int


@dataclass(frozen=True)
class Edge:
    """Up to which of the learning rates tried half of the seeds train at a place.

    rate     the largest at which the median over seeds trains; None where it trains at none
    is_last  whether that is the largest that was tried: the frontier may lie beyond
    lowest   the lowest that was tried
    low      the smallest of the seeds' own largest rates; None where some seed trains at none
    high     the next rate above the largest of them; None where no larger one was tried
    falling  the rates at which it does not train and most seeds still fell: too few steps to tell
    steps    of each run: with more of them more may train
    """

    place: Place
    rate: float | None
    is_last: bool
    low: float | None
    high: float | None
    falling: tuple[float, ...]
    steps: int
    lowest: float

    @property
    def text(self) -> str:
        """ "0.01 (0.003 to 0.03)": the rate, and between what the own limit of each seed lies. That is an
        interval for the limit of half of all seeds, with the confidence `Spread.coverage`."""
        if self.rate is None:
            return f"none from {self.lowest:g} up in {self.steps} steps{self.slow}"
        if self.is_last and self.low == self.rate:
            return f"≥ {self.rate:g}"
        low = "none" if self.low is None else f"{self.low:g}"
        high = "more" if self.high is None else f"{self.high:g}"
        return f"{'≥ ' * self.is_last}{self.rate:g} ({low} to {high})"

    @property
    def slow(self) -> str:
        """ ", still falling at 0.0001": where more steps may be all that lacks; "" without such a rate."""
        return (
            f", still falling at {listed([f'{lr:g}' for lr in self.falling])}"
            if self.falling
            else ""
        )


def sensitivity(grid: Grid, points: Iterable[Point]) -> list[Sensitivity]:
    """One row for each combination of the other axes whose rates have all been run."""
    axis = grid.axis("lr")
    if axis is None:
        return []
    rows = []
    for place, group in by_place(grid, points, "lr").items():
        seeds: dict[int, list[Point]] = defaultdict(list)
        for point in group:
            seeds[point.cell.seed].append(point)
        whole = [
            seed_points for seed_points in seeds.values() if len(seed_points) == len(axis.values)
        ]
        if whole:
            rows.append(_sensitivity(place, axis.values, whole))
    return rows


def _sensitivity(
    place: Place, rates: tuple[float, ...], seeds: Sequence[Sequence[Point]]
) -> Sensitivity:
    values, bests = zip(*(wortsman(seed_points) for seed_points in seeds), strict=True)
    flat = [point for seed_points in seeds for point in seed_points]
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
        falling=tuple(r for r in rates if sum(p.falling for p in at[r]) * 2 > len(at[r])),
        diverged=sum(p.is_lost for p in flat),
    )


def wortsman(points: Sequence[Point]) -> tuple[float, float]:
    """(sensitivity, lowest final loss) of one seed's runs, one a learning rate, in nats; arXiv:2309.14322."""
    ended = [p.first if p.is_lost or not np.isfinite(p.loss) else p.loss for p in points]
    lowest = min(ended)
    return fmean(min(x, p.first) - lowest for x, p in zip(ended, points, strict=True)), lowest


def frontier(grid: Grid, points: Iterable[Point]) -> list[Edge]:
    """The largest learning rate that trains, of those that ran, for each combination of the other axes."""
    if grid.axis("lr") is None:
        return []
    return [_edge(place, group) for place, group in by_place(grid, points, "lr").items()]


def _edge(place: Place, points: Sequence[Point]) -> Edge:
    rates: dict[float, list[Point]] = defaultdict(list)
    limits: dict[int, float] = {point.cell.seed: 0.0 for point in points}
    for point in points:
        lr, seed = point.cell.config.lr, point.cell.seed
        rates[lr].append(point)
        if point.trains:
            limits[seed] = max(limits[seed], lr)
    good = {lr for lr, seeds in rates.items() if trains(seeds)}
    rate = max(good, default=None)
    falling = (lr for lr, seeds in rates.items() if lr not in good and mark(seeds) == "falling")
    return Edge(
        place, rate, rate == max(rates), min(limits.values()) or None,
        min((lr for lr in rates if lr > max(limits.values())), default=None), tuple(sorted(falling)),
        points[0].cell.config.steps, min(rates),
    )  # fmt: skip


def trains(seeds: Sequence[Point]) -> bool:
    """Whether the median over seeds trains."""
    first = seeds[0]
    return median(p.capped for p in seeds) <= trained_below(first.chance, first.floor)


def mark(seeds: Sequence[Point]) -> str:
    """What a cell of a map is marked with: diverged or falling, where most seeds are; else nothing."""
    marks = ["diverged" if p.is_lost else "falling" if p.falling else "" for p in seeds]
    return next((m for m in ("diverged", "falling") if 2 * marks.count(m) > len(marks)), "")


def by_place(grid: Grid, points: Iterable[Point], *without: str) -> dict[Place, list[Point]]:
    """Points by their values on all axes but those named."""
    groups: dict[Place, list[Point]] = defaultdict(list)
    for point in points:
        groups[place_of(grid, point.cell, *without)].append(point)
    return dict(groups)


def place_of(grid: Grid, cell: Cell, *without: str) -> Place:
    """A cell's values on all axes but those named."""
    return tuple(
        (axis.field, axis.values[i])
        for axis, i in zip(grid.axes, cell.at, strict=True)
        if axis.field not in without
    )


def best_over_rates(points: Iterable[Point]) -> dict[int, float]:
    """For each seed the lowest loss over whatever else differs, capped at chance."""
    best: dict[int, float] = {}
    for point in points:
        best[point.cell.seed] = min(best.get(point.cell.seed, np.inf), point.capped)
    return best


def against(first: Iterable[Point], second: Iterable[Point]) -> Comparison | None:
    """Two groups by their lowest losses, paired by seed; None where they share none."""
    a, b = best_over_rates(first), best_over_rates(second)
    shared = sorted(a.keys() & b.keys())
    return compare([a[k] for k in shared], [b[k] for k in shared]) if shared else None


# Sentences.


def edge_words(grid: Grid, edge: Edge) -> str:
    """ "Post-LN, depth 16: half of 3 seeds train up to lr 0.003 (0.003 to 0.01)"."""
    where = f"{place_name(grid, edge.place)}: " if edge.place else ""
    if edge.rate is None:
        most = "most seeds train" if grid.seeds > 1 else "trains"
        return f"{where}{most} at no rate tried from {edge.lowest:g} up in {edge.steps} steps{edge.slow}"
    return (
        f"{where}{'half of the seeds train' if grid.seeds > 1 else 'trains'} up to lr {edge.text}"
    )


def edge_rows(
    grid: Grid, points: Iterable[Point], across: str, missing: Iterable[Cell] = ()
) -> dict[str, dict[str, str]]:
    """The edges as a table: by the name of a row, the values of `across`, an axis that is not the learning
    rate, and the text of each edge, "…" where one of its cells is `missing`.
    Empty where the learning rate is no axis."""
    axis = grid.axis(across)
    texts = {edge.place: edge.text for edge in frontier(grid, points)}
    if grid.axis("lr") is not None:
        texts |= dict.fromkeys((place_of(grid, cell, "lr") for cell in missing), "…")
    edges = [(dict(place), text) for place, text in texts.items()]
    first = sorted(grid.axes, key=lambda axis: axis.field != across)
    edges.sort(key=lambda it: [a.values.index(it[0][a.field]) for a in first if a.field in it[0]])
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for place, text in edges:
        column = axis.shown(place.pop(across)) if axis else ""
        rows[place_name(grid, tuple(place.items()))][column] = text
    return dict(rows)


def sensitivity_words(grid: Grid, row: Sensitivity) -> Iterator[str]:
    """The number beside the best loss, then what it must not be taken for."""
    where = f"{place_name(grid, row.place)}: " if row.place else ""
    excess = "" if row.excess is None else f", {row.excess.median:.3f} above the floor"
    yield (
        f"{where}learning-rate sensitivity {row.value.text()}; best loss {row.best.text()} at lr "
        f"{row.best_rate:g}{excess}"
    )
    if row.fails:
        yield "  no rate trains, so a small sensitivity says nothing here"
    if row.falling:
        rates = ", ".join(f"{rate:g}" for rate in row.falling)
        yield f"  still falling at lr {rates}: part of it may be lack of steps"


def comparisons(grid: Grid, points: Sequence[Point]) -> Iterator[str]:
    """The first axis of names, value against value at the best learning rate of each."""
    named = next((axis for axis in grid.axes if not axis.is_ordered), None)
    if named is None:
        return
    for place, group in by_place(grid, points, named.field, "lr").items():
        sides = by_place(grid, group, *(axis.field for axis in grid.axes if axis != named))
        where = f"{place_name(grid, place)}: " if place else ""
        for (a, first), (b, second) in combinations(sides.items(), 2):
            comparison = against(first, second)
            if comparison is not None:
                yield where + comparison.sentence(place_name(grid, a), place_name(grid, b))


def place_name(grid: Grid, place: Place) -> str:
    """ "Post-LN, depth 12"."""
    words = []
    for field, value in place:
        axis = grid.axis(field)
        assert axis is not None
        words.append(f"{field} {axis.shown(value)}" if axis.is_ordered else axis.shown(value))
    return ", ".join(words)


def table(grid: Grid, points: Iterable[Point]) -> pd.DataFrame:
    """A column for each axis, then

    seed         which repeat, from 0
    run          key of the result: engine version and hash of the config
    engine       which one computed its steps: tape (in C++), eager (PyTorch's own operations), captured (the
                 same as a CUDA graph) or stacked (several cells at once, on a GPU)
    result       the kind of its verdict (see `normviz.runs.verdict`)
    verdict      the same in words
    steps        how many it made
    final_loss   mean loss of the last tenth of the steps, nats per token; NaN where it diverged
    last_loss    that mean whatever came of it
    capped_loss  last_loss, at most chance; chance where it diverged
    first_loss   loss of step 0
    chance       loss of the best guess that ignores the context
    floor        lowest reachable loss; NaN where unknown
    excess       final_loss - floor
    falling      whether the loss surely still fell at the end
    seconds      of one core
    """
    rows = [
        {
            **{
                axis.field: axis.values[i] for axis, i in zip(grid.axes, point.cell.at, strict=True)
            },
            "seed": point.cell.seed,
            "run": point.cell.key,
            "engine": point.engine,
            "result": point.kind,
            "verdict": point.sentence,
            "steps": point.steps,
            "final_loss": point.final,
            "last_loss": point.loss,
            "capped_loss": point.capped,
            "first_loss": point.first,
            "chance": point.chance,
            "floor": float("nan") if point.floor is None else point.floor,
            "excess": float("nan") if point.floor is None else point.final - point.floor,
            "falling": point.falling,
            "seconds": point.seconds,
        }
        for point in points
    ]
    return pd.DataFrame(rows)
