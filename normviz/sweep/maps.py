"""A sweep's points as maps: two axes of numbers span one, everything else makes another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from ..charts.map import Map, MapCell
from ..config import RunConfig
from ..links import shown
from .grid import Axis, Grid, SweepError
from .points import Point
from .summary import Place, by_place, trains

PREFERRED_Y = "lr"


def maps(grid: Grid, points: Sequence[Point]) -> list[Map]:
    """One map for each combination of the other axes. Raises SweepError without two axes of numbers.

    The learning rate goes upwards, and where it does the frontier is drawn.
    """
    x, y = spanned(grid)
    found = []
    for place, group in by_place(grid, points, x.field, y.field).items():
        found.append(_map(grid, x, y, place, group))
    if not found:
        raise SweepError("no cell has ended, so there is no map to draw")
    return found


def spanned(grid: Grid) -> tuple[Axis, Axis]:
    """The two axes of a map, to the right and upwards."""
    ordered = [axis for axis in grid.axes if axis.is_ordered]
    if len(ordered) < 2:
        raise SweepError(
            "a map needs two settings that are numbers, each with several values, as in "
            "depth=2,4,8 lr=1e-3,1e-2"
        )
    y = next((axis for axis in ordered if axis.field == PREFERRED_Y), ordered[1])
    return next(axis for axis in ordered if axis != y), y


def _map(grid: Grid, x: Axis, y: Axis, place: Place, points: Sequence[Point]) -> Map:
    groups = by_place(grid, points, *(axis.field for axis in grid.axes if axis not in (x, y)))
    cells = []
    good: dict[int, int] = {}
    for at, seeds in groups.items():
        values = dict(at)
        column, row = x.values.index(values[x.field]), y.values.index(values[y.field])
        cells.append(_cell(column, row, seeds, grid))
        if trains(seeds):
            good[column] = max(row, good.get(column, row))
    frontier = tuple(good.get(c) for c in range(len(x.values))) if y.field == PREFERRED_Y else ()
    words = [
        axis.shown(value) if not axis.is_ordered else f"{axis.field} {axis.shown(value)}"
        for axis in grid.axes
        for field, value in place
        if axis.field == field
    ]
    floors = [p.floor for p in points if p.floor is not None]
    return Map(
        title=", ".join(words) or shown("scheme", grid.base.scheme),
        x=_title(x),
        y=_title(y),
        columns=tuple(map(x.shown, x.values)),
        rows=tuple(map(y.shown, y.values)),
        cells=tuple(cells),
        frontier=frontier,
        chance=max(p.chance for p in points),
        floor=min(floors) if floors else min(p.capped for p in points),
        note=_note(cells, grid.seeds),
    )


def _title(axis: Axis) -> str:
    return RunConfig.model_fields[axis.field].title or axis.field


def _cell(column: int, row: int, seeds: Sequence[Point], grid: Grid) -> MapCell:
    """A cell of all its seeds: the median loss, and the mark that most of them have."""
    marks = [_mark(p) for p in seeds]
    mark = next((m for m in ("diverged", "flat", "falling") if 2 * marks.count(m) > len(marks)), "")
    middle = sorted(seeds, key=lambda p: p.capped)[len(seeds) // 2]
    loss = median(p.capped for p in seeds)
    many = f", median of {len(seeds)} seeds" if len(seeds) > 1 else ""
    shown = "not a number" if not math.isfinite(loss) else f"{loss:.2f}"
    return MapCell(column, row, loss, mark, f"{shown}{many}: {middle.sentence}", middle.cell.key)


def _mark(one: Point) -> str:
    if one.kind in ("diverged", "flat"):
        return one.kind
    return "falling" if one.falling else ""


def _note(cells: Sequence[MapCell], seeds: int) -> str:
    """The seeds, and what the marks mean that occur."""
    marks = {cell.mark for cell in cells}
    words = [f"median of {seeds} seeds" if seeds > 1 else "1 seed"]
    if "diverged" in marks:
        words.append("× diverged")
    if "flat" in marks:
        words.append("○ stopped, flat at chance")
    if "falling" in marks:
        words.append("▼ still falling")
    return " · ".join(words)
