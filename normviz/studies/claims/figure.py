"""A claim's figure: the series that the result stores, and the chart's input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ...catalog import PROBES
from ...charts.claim import Figure, Line, Points, rows
from ...config import SETTINGS
from ...links import encode
from ...runs.statistics import Interval, interval
from .choice import redrawn
from .evidence import CellResult, Sample, recording_of, trains
from .record import Claim, Curve, Layers, Pick, Scatter, Strip, Theory
from .rule import SEEDS, Correlated, Drawn
from .stored import ClaimResult, Series

FINE = 40
"""Points of a theory's line."""


def series(
    claim: Claim, samples: Sequence[Sample], numbers: Mapping[str, Sequence[float]]
) -> list[Series]:
    """The figure's series, one per arm."""
    figure = claim.figure
    if isinstance(figure, Strip):
        names = figure.names or tuple(claim.numbers)
        return [Series(n, claim.numbers[n].label, "", [0], [numbers[n]]) for n in names]
    all_series = []
    for arm in claim.arms:
        first = samples[0].runs(arm)
        label, scheme = claim.arm_label(arm), first[0].config.scheme
        if isinstance(figure, Scatter):
            runs = [run for sample in samples for run in sample.runs(arm)]
            points = [(figure.x.of(run), [figure.y.of(run)], trains(run)) for run in runs]
            all_series.append(Series(arm, label, scheme, *map(list, zip(*points, strict=True))))
            continue
        if isinstance(figure, Curve):
            xs: list[float | str] = sorted({getattr(run.config, figure.x) for run in first})
            ys = [
                [figure.y.of(o) for s in samples for o in s.runs(arm, **{figure.x: x})] for x in xs
            ]
        else:
            last = [sample.runs(arm)[-1] for sample in samples]
            start = PROBES[figure.probe].first_layer
            xs = list(range(start, last[0].config.depth + 1))
            ys = [[_layer(run, figure, int(x)) for run in last] for x in xs]
        all_series.append(Series(arm, label, scheme, xs, ys))
    return all_series


def _layer(run: CellResult, figure: Layers, layer: int) -> float:
    recording = recording_of(run)
    return recording.at(figure.probe, recording.last if figure.step < 0 else figure.step, layer)


def drawn(claim: Claim, result: ClaimResult) -> Figure:
    """The chart's input: the stored series and the theory's lines."""
    figure = claim.figure
    points = tuple(
        Points(
            arm_series.label,
            arm_series.scheme,
            tuple(map(float, arm_series.x)),
            tuple(map(tuple, arm_series.y)),
            tuple(arm_series.trains),
        )
        for arm_series in result.figure
    )
    if isinstance(figure, Strip):
        choice = redrawn(claim, result.numbers)
        points = tuple(
            replace(row, bounds=_bounds(claim, result, arm_series.arm, choice))
            for row, arm_series in zip(points, result.figure, strict=True)
        )
        return Figure(points, "", figure.title, False, figure.log_y, is_strip=True)
    if isinstance(figure, Curve):
        title, log_x, log_y = figure.y.title, figure.log_x, figure.log_y
        x = SETTINGS[figure.x].title
    elif isinstance(figure, Scatter):
        title, x, log_x, log_y = figure.y.title, figure.x.title, figure.log_x, figure.log_y
    else:
        step = "the end" if figure.step < 0 else f"step {figure.step}"
        title, x = f"{PROBES[figure.probe].axis_label} at {step}", "layer"
        log_x, log_y = False, figure.log_y
    lines = tuple(_line(theory, result.figure, log_x) for theory in claim.theory)
    is_scatter = isinstance(figure, Scatter)
    if isinstance(figure, Scatter) and figure.shape:
        points = tuple(
            replace(arm, kind=_kind(claim, arm_series.arm, figure.shape))
            for arm, arm_series in zip(points, result.figure, strict=True)
        )
    return Figure(points, x, title, log_x, log_y, lines, is_scatter=is_scatter)


def _bounds(claim: Claim, result: ClaimResult, name: str, choice: Drawn | None) -> Interval | None:
    """Of a number of a strip the 95 % interval of the mean, on a log axis of the geometric mean, as the rule
    takes it: with the choice of rates, or over placements. None for fewer seeds than a rule takes, and where
    a number is not finite."""
    assert isinstance(claim.figure, Strip)
    values, ratio = result.numbers[name], claim.figure.log_y
    for part in claim.rule:
        if isinstance(part.check, Correlated) and part.check.name == name:
            return part.check.interval(values)
    variance = choice.variance(name, ratio) if choice else None
    return interval(values, ratio, variance=variance) if len(values) >= SEEDS else None


def _kind(claim: Claim, arm: str, name: str) -> str:
    """A setting of an arm in words."""
    value = getattr(claim.grid(arm, 1).cells[0].config, name)
    return f"{SETTINGS[name].title.lower()} {value:g}"


def bars(claim: Claim) -> str:
    """What the bars of a strip are, in words."""
    assert isinstance(claim.figure, Strip)
    if any(isinstance(part.check, Correlated) for part in claim.rule):
        return "95 % intervals over placements, as the rule takes them"
    mean = "geometric mean" if claim.figure.log_y else "mean"
    choice = " with the choice of rates" if claim.tuned else ""
    return f"95 % intervals of each row's {mean}{choice}"


def linked(claim: Claim, result: ClaimResult) -> Figure:
    """The chart's input, with the link of a duel for each point: of its run, or of the runs that the
    strip says. The points of other strips, and of what a lab measured over a setting, have no links."""
    figure = drawn(claim, result)
    if isinstance(claim.figure, Strip):
        if claim.figure.runs is None:
            return figure
        links = _runs_of_numbers(claim, claim.figure.runs, result)
        return replace(
            figure,
            points=tuple(
                replace(points, links=(links[arm_series.arm],))
                for arm_series, points in zip(result.figure, figure.points, strict=True)
            ),
        )
    if claim.lab:
        return figure
    linked_points, n = [], len(figure_seeds(claim, result))
    for arm_series, points in zip(result.figure, figure.points, strict=True):
        cells = claim.grid(arm_series.arm, n, result.first).cells
        seeds = [
            [cell.config for cell in sorted(cells, key=lambda cell: cell.at) if cell.seed == seed]
            for seed in range(n)
        ]
        if isinstance(claim.figure, Scatter):
            runs = [[config] for configs in seeds for config in configs]
        elif isinstance(claim.figure, Curve):
            name = claim.figure.x
            runs = [[c for cs in seeds for c in cs if getattr(c, name) == x] for x in arm_series.x]
        else:
            runs = [[configs[-1] for configs in seeds]] * len(arm_series.x)
        linked_points.append(
            replace(points, links=tuple(tuple(encode((c,)) for c in cs) for cs in runs))
        )
    return replace(figure, points=tuple(linked_points))


def points(claim: Claim, result: ClaimResult) -> list[dict[str, Any]]:
    """The figure's points for JSON: arm, x, y, seed, and the link of the duel that a point opens."""
    point_rows, seeds = rows(linked(claim, result)), figure_seeds(claim, result)
    for row in point_rows:
        row.pop("column", None)  # where it is drawn
    return [{**row, "seed": seeds[row["seed"]]} if "seed" in row else row for row in point_rows]


def figure_seeds(claim: Claim, result: ClaimResult) -> list[int]:
    """The seeds of the figure: all of a strip, which shows the result's numbers, else those of the first
    set."""
    is_all = isinstance(claim.figure, Strip) or not result.sets
    return result.seed_list[: None if is_all else result.sets[0][1]]


def _runs_of_numbers(
    claim: Claim,
    runs: Callable[[str, Mapping[str, float]], Sequence[Pick]],
    result: ClaimResult,
) -> dict[str, tuple[str, ...]]:
    """Of each number in the figure the links of its seeds; "" where it was read from no run."""
    seeds = [
        (seed, {name: values[k] for name, values in result.numbers.items()})
        for k, seed in enumerate(result.seed_list)
    ]
    links = {}
    for arm_series in result.figure:
        duels = [claim.duel(runs(arm_series.arm, numbers), seed) for seed, numbers in seeds]
        links[arm_series.arm] = tuple(encode(lanes) if lanes else "" for lanes in duels)
    return links


def _line(theory: Theory, figure: Sequence[Series], log_x: bool) -> Line:
    """A closed form over the x range of its arm, or of all arms."""
    own = [arm_series for arm_series in figure if theory.arm in ("", arm_series.arm)]
    xs = [float(x) for arm_series in own for x in arm_series.x]
    low, high = min(xs), max(xs)
    x0, y0 = float(own[0].x[0]), median(own[0].y[0])
    if log_x:
        fine = [low * (high / low) ** (i / (FINE - 1)) for i in range(FINE)]
    else:
        fine = [low + (high - low) * i / (FINE - 1) for i in range(FINE)]
    ys = [theory.of(x, x0, y0) for x in fine]
    finite_points = [(x, y) for x, y in zip(fine, ys, strict=True) if math.isfinite(y)]
    return Line(f"{theory.label} ({theory.assumes})", tuple(finite_points))
