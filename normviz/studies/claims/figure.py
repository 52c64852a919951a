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
from .evidence import CellResult, Sample, recording_of, trains
from .record import Claim, Curve, Layers, Pick, Scatter, Strip, Theory
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
    found = []
    for arm in claim.arms:
        first = samples[0].runs(arm)
        label, scheme = claim.arm_label(arm), first[0].config.scheme
        if isinstance(figure, Scatter):
            runs = [one for sample in samples for one in sample.runs(arm)]
            points = [(figure.x.of(one), [figure.y.of(one)], trains(one)) for one in runs]
            found.append(Series(arm, label, scheme, *map(list, zip(*points, strict=True))))
            continue
        if isinstance(figure, Curve):
            xs: list[float | str] = sorted({getattr(one.config, figure.x) for one in first})
            ys = [
                [figure.y.of(o) for s in samples for o in s.runs(arm, **{figure.x: x})] for x in xs
            ]
        else:
            last = [sample.runs(arm)[-1] for sample in samples]
            start = PROBES[figure.probe].first_layer
            xs = list(range(start, last[0].config.depth + 1))
            ys = [[_layer(one, figure, int(x)) for one in last] for x in xs]
        found.append(Series(arm, label, scheme, xs, ys))
    return found


def _layer(one: CellResult, figure: Layers, layer: int) -> float:
    it = recording_of(one)
    return it.at(figure.probe, it.last if figure.step < 0 else figure.step, layer)


def drawn(claim: Claim, result: ClaimResult) -> Figure:
    """The chart's input: the stored series and the theory's lines."""
    figure = claim.figure
    points = tuple(
        Points(
            one.label,
            one.scheme,
            tuple(map(float, one.x)),
            tuple(map(tuple, one.y)),
            tuple(one.trains),
        )
        for one in result.figure
    )
    if isinstance(figure, Strip):
        return Figure(points, "", figure.title, False, figure.log_y, is_strip=True)
    if isinstance(figure, Curve):
        title, log_x, log_y = figure.y.title, figure.log_x, figure.log_y
        x = SETTINGS[figure.x].title
    elif isinstance(figure, Scatter):
        title, x, log_x, log_y = figure.y.title, figure.x.title, figure.log_x, figure.log_y
    else:
        step = "the last step" if figure.step < 0 else f"step {figure.step}"
        title, x = f"{PROBES[figure.probe].axis_label} at {step}", "layer"
        log_x, log_y = False, figure.log_y
    lines = tuple(_line(theory, result.figure, log_x) for theory in claim.theory)
    is_scatter = isinstance(figure, Scatter)
    return Figure(points, x, title, log_x, log_y, lines, is_scatter=is_scatter)


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
                replace(points, links=(links[one.arm],))
                for one, points in zip(result.figure, figure.points, strict=True)
            ),
        )
    if claim.lab:
        return figure
    found = []
    for one, points in zip(result.figure, figure.points, strict=True):
        cells = claim.grid(one.arm, result.seeds, result.first).cells
        seeds = [
            [cell.config for cell in sorted(cells, key=lambda it: it.at) if cell.seed == seed]
            for seed in range(result.seeds)
        ]
        if isinstance(claim.figure, Scatter):
            runs = [[config] for configs in seeds for config in configs]
        elif isinstance(claim.figure, Curve):
            name = claim.figure.x
            runs = [[c for cs in seeds for c in cs if getattr(c, name) == x] for x in one.x]
        else:
            runs = [[configs[-1] for configs in seeds]] * len(one.x)
        found.append(replace(points, links=tuple(tuple(encode((c,)) for c in cs) for cs in runs)))
    return replace(figure, points=tuple(found))


def points(claim: Claim, result: ClaimResult) -> list[dict[str, Any]]:
    """The figure's points for JSON: arm, x, y, seed, and the link of the duel that a point opens."""
    found = rows(linked(claim, result))
    return [{**it, "seed": result.first + it["seed"]} if "seed" in it else it for it in found]


def _runs_of_numbers(
    claim: Claim,
    runs: Callable[[str, Mapping[str, float]], Sequence[Pick]],
    result: ClaimResult,
) -> dict[str, tuple[str, ...]]:
    """Of each number in the figure the links of its seeds; "" where it was read from no run."""
    seeds = [
        {name: values[seed] for name, values in result.numbers.items()}
        for seed in range(result.seeds)
    ]
    found = {}
    for one in result.figure:
        duels = [
            claim.duel(runs(one.arm, numbers), result.first + seed)
            for seed, numbers in enumerate(seeds)
        ]
        found[one.arm] = tuple(encode(lanes) if lanes else "" for lanes in duels)
    return found


def _line(theory: Theory, figure: Sequence[Series], log_x: bool) -> Line:
    """A closed form over the x range of its arm, or of all arms."""
    own = [one for one in figure if theory.arm in ("", one.arm)]
    xs = [float(x) for one in own for x in one.x]
    low, high = min(xs), max(xs)
    x0, y0 = float(own[0].x[0]), median(own[0].y[0])
    if log_x:
        fine = [low * (high / low) ** (i / (FINE - 1)) for i in range(FINE)]
    else:
        fine = [low + (high - low) * i / (FINE - 1) for i in range(FINE)]
    ys = [theory.of(x, x0, y0) for x in fine]
    kept = [(x, y) for x, y in zip(fine, ys, strict=True) if math.isfinite(y)]
    return Line(f"{theory.label} ({theory.assumes})", tuple(kept))
