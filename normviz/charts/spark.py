"""A claim's figure as a spark: a small SVG without axes and script, for a row of a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

from .claim import OUTCOMES, Figure, row_color
from .palette import GREY, lane_styles
from .svg import Points, document, line

WIDTH, HEIGHT, EDGE = 112, 48, 4
DOT = 2.2


def svg(figure: Figure) -> str:
    """Medians as lines in the colours of the figure, theory dashed. A strip has a row of dots a number."""
    draw = _scatter if figure.is_scatter else _strip if figure.is_strip else _curves
    return document(draw(figure), WIDTH, HEIGHT)


def title(figure: Figure) -> str:
    """What the spark draws: "final loss (nats) over learning rate"."""
    return f"{figure.y} over {figure.x}" if figure.x else figure.y


def _curves(figure: Figure) -> list[str]:
    medians = [
        [(x, median(ys)) for x, ys in zip(arm.x, arm.y, strict=True)] for arm in figure.points
    ]
    theories = [theory.points for theory in figure.lines]
    points = [point for curve in (*medians, *theories) for point in curve]
    x = _scale([x for x, _ in points], figure.log_x, EDGE, WIDTH - EDGE)
    y = _scale([y for _, y in points], figure.log_y, HEIGHT - EDGE, EDGE)
    parts = [line(_placed(theory, x, y), GREY, "3 2", 1) for theory in theories]
    styles = lane_styles(tuple(arm.scheme or arm.label for arm in figure.points))
    for curve, style in zip(medians, styles, strict=True):
        placed = _placed(curve, x, y)
        parts.append(line(placed, style.color, " ".join(map(str, style.dash)), 1.8))
        if len(placed) == 1:
            parts.append(_dot(*placed[0], style.color))
    return parts


def _scatter(figure: Figure) -> list[str]:
    runs = [
        (x, y, good)
        for arm in figure.points
        for x, (y,), good in zip(arm.x, arm.y, arm.trains, strict=True)
    ]
    theories = [theory.points for theory in figure.lines]
    ends = [(x, y) for x, y, _ in runs] + [point for theory in theories for point in theory]
    x = _scale([x for x, _ in ends], figure.log_x, EDGE, WIDTH - EDGE)
    y = _scale([y for _, y in ends], figure.log_y, HEIGHT - EDGE, EDGE)
    trained, failed = OUTCOMES.values()
    parts = [line(_placed(theory, x, y), GREY, "3 2", 1) for theory in theories]
    for a, b, good in sorted(runs, key=lambda run: not run[2]):
        parts += [_dot(*at, trained if good else failed) for at in _placed([(a, b)], x, y)]
    return parts


def _strip(figure: Figure) -> list[str]:
    rows = [arm.y[0] for arm in figure.points]
    x = _scale([value for row in rows for value in row], figure.log_y, EDGE, WIDTH - EDGE)
    parts = []
    for i, (row, color) in enumerate(zip(rows, map(row_color, figure.points), strict=True)):
        y = HEIGHT * (i + 0.5) / len(rows)
        parts.append(line([(0, y), (WIDTH, y)], GREY, "1 3", 0.8))
        parts += [_dot(at, y, color) for value in row if (at := x(value)) is not None]
    return parts


Scale = Callable[[float], float | None]


def _scale(values: Sequence[float], log: bool, start: float, end: float) -> Scale:
    """From a value to pixels; None for a value that can't be drawn."""

    def at(value: float) -> float | None:
        if not math.isfinite(value) or (log and value <= 0):
            return None
        return math.log(value) if log else value

    positions = [position for position in map(at, values) if position is not None]
    low, high = min(positions, default=0), max(positions, default=0)

    def pixels(value: float) -> float | None:
        place = at(value)
        if place is None:
            return None
        share = (place - low) / (high - low) if high > low else 0.5
        return start + (end - start) * share

    return pixels


def _placed(line: Points, x: Scale, y: Scale) -> list[tuple[float, float]]:
    both = ((x(a), y(b)) for a, b in line)
    return [(a, b) for a, b in both if a is not None and b is not None]


def _dot(x: float, y: float, color: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT}" fill="{color}" fill-opacity=".8"/>'
