"""A sweep's points as maps: two axes span one, everything else makes another."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import product
from statistics import median

from ...charts.map import Map, MapCell
from ...config import SETTINGS
from ...links import shown
from .grid import Axis, Cell, Grid, SweepError
from .points import Point
from .summary import Place, mark, place_name, place_of, trains

PREFERRED_Y = "lr"
FLOOR_STEP = 0.25
"""Where no floor is known the colours end at a multiple of this: they stay while a map fills."""

Fields = tuple[str, str]
"""The settings to the right and upwards."""
Spot = tuple[int, int]
"""Column and row of a cell on its map."""


def maps(
    grid: Grid,
    points: Sequence[Point],
    fields: Fields | None = None,
    running: Collection[Cell] = (),
    curve: Callable[[Sequence[Point]], str] = lambda _: "",
) -> list[Map]:
    """One map for each combination of the other axes; cells that nobody ran have no loss.

    `fields` name the settings to the right and upwards (see `spanned`); where the learning rate goes
    upwards the frontier is drawn. `curve` draws a cell's losses as the address of a small picture.
    Raises SweepError without an axis, and for several of which none is a number.
    """
    x, y = spanned(grid, fields)
    others = [axis for axis in grid.axes if axis not in (x, y)]
    all_maps = []
    for values in product(*(axis.values for axis in others)):
        place = tuple((axis.field, value) for axis, value in zip(others, values, strict=True))
        all_maps.append(_map(grid, x, y, place, points, running, curve))
    return all_maps


def spanned(grid: Grid, fields: Fields | None = None) -> tuple[Axis, Axis]:
    """The two axes of a map, to the right and upwards: those named, which may have one value, else two that
    are numbers (the learning rate goes upwards), else a number and the last axis that is none. A single axis
    stands beside the learning rate of all cells, and a single learning rate beside their placement."""
    if fields is not None:
        return axis_of(grid, fields[0]), axis_of(grid, fields[1])
    ordered = [axis for axis in grid.axes if axis.is_ordered]
    named = [axis for axis in grid.axes if not axis.is_ordered]
    if len(grid.axes) == 1:
        (axis,) = grid.axes
        is_rate = axis.field == PREFERRED_Y
        return (axis_of(grid, "scheme"), axis) if is_rate else (axis, axis_of(grid, PREFERRED_Y))
    if not ordered:
        raise SweepError(
            "a map needs a setting with several values, and of several such settings one that is a number, "
            "as in depth=2,4,8 lr=1e-3,1e-2"
        )
    if len(ordered) == 1:
        return ordered[0], named[-1]
    y = next((axis for axis in ordered if axis.field == PREFERRED_Y), ordered[1])
    return next(axis for axis in ordered if axis != y), y


def axis_of(grid: Grid, field: str) -> Axis:
    """The axis of a setting; of one value, where all cells share it."""
    return grid.axis(field) or Axis(field, (getattr(grid.base, field),))


def _map(
    grid: Grid,
    x: Axis,
    y: Axis,
    place: Place,
    points: Sequence[Point],
    running: Collection[Cell],
    curve: Callable[[Sequence[Point]], str],
) -> Map:
    own = _cells(grid, x, y, place)
    seeds: dict[Spot, list[Point]] = {at: [] for at in own}
    where = {cell: at for at, cells in own.items() for cell in cells}
    for point in points:
        if point.cell in where:
            seeds[where[point.cell]].append(point)
    busy = {where[cell] for cell in running if cell in where}
    cells = tuple(
        _cell(at, _where(x, y, at), seeds[at], cells, at in busy, curve)
        for at, cells in sorted(own.items())
    )
    known = [point for group in seeds.values() for point in group]
    return Map(
        title=place_name(grid, place) or _only(grid, x, y),
        x=_title(x),
        y=_title(y),
        columns=tuple(map(x.shown, x.values)),
        rows=tuple(map(y.shown, y.values)),
        cells=cells,
        frontier=_frontier(seeds, len(x.values)) if y.field == PREFERRED_Y else (),
        chance=max((p.chance for p in known), default=None),
        floor=_floor(known),
        note=_note(cells, grid.seeds),
    )


def _cells(grid: Grid, x: Axis, y: Axis, place: Place) -> dict[Spot, list[Cell]]:
    """The grid's cells of one map by column and row, seed by seed."""
    i, j = (grid.axes.index(axis) if axis in grid.axes else None for axis in (x, y))
    cells: dict[Spot, list[Cell]] = {}
    for cell in sorted(grid.cells, key=lambda cell: cell.seed):
        if place_of(grid, cell, x.field, y.field) == place:
            at = (0 if k is None else cell.at[k] for k in (i, j))
            cells.setdefault((next(at), next(at)), []).append(cell)
    return cells


def _frontier(seeds: dict[Spot, list[Point]], columns: int) -> tuple[int | None, ...]:
    """The last row that trains in each column; nothing before the first cell has ended."""
    good = [at for at, group in seeds.items() if group and trains(group)]
    if not any(seeds.values()):
        return ()
    return tuple(max((r for c, r in good if c == i), default=None) for i in range(columns))


def _floor(points: Sequence[Point]) -> float | None:
    """Where the colours end: the lowest reachable loss, or a little below the lowest there is."""
    floors = [p.floor for p in points if p.floor is not None]
    if floors or not points:
        return min(floors, default=None)
    return FLOOR_STEP * math.floor(min(p.capped for p in points) / FLOOR_STEP)


def _title(axis: Axis) -> str:
    return SETTINGS[axis.field].title


def _only(grid: Grid, x: Axis, y: Axis) -> str:
    """The title of a sweep's only map: its placement, or its axes where placements are one of them."""
    if "scheme" in (x.field, y.field):
        return f"{_title(x)} × {_title(y)}".capitalize()
    return shown("scheme", grid.base.scheme)


def _where(x: Axis, y: Axis, at: Spot) -> str:
    column, row = (axis.shown(axis.values[i]) for axis, i in zip((x, y), at, strict=True))
    return f"{_title(x)} {column}, {_title(y)} {row}"


def _cell(
    at: Spot,
    where: str,
    seeds: Sequence[Point],
    cells: Sequence[Cell],
    is_busy: bool,
    curve: Callable[[Sequence[Point]], str],
) -> MapCell:
    """A cell of all its seeds: the median loss, and the mark that most of them have."""
    if not seeds:
        words = "training now" if is_busy else "not run yet"
        return MapCell(*at, None, "running" if is_busy else "", where, words, cells[0].key)
    middle = sorted(seeds, key=lambda p: p.capped)[len(seeds) // 2]
    loss = median(p.capped for p in seeds)
    losses = ", ".join("diverged" if p.is_lost else f"{p.loss:.2f}" for p in seeds)
    many = f"median of {len(seeds)} seeds: {losses}" if len(seeds) > 1 else "1 seed"
    words = f"{middle.sentence} ({many})"
    return MapCell(*at, loss, mark(seeds), where, words, middle.cell.key, curve(seeds))


def _note(cells: Sequence[MapCell], seeds: int) -> str:
    """The seeds, and what the marks mean that occur."""
    marks = {cell.mark for cell in cells}
    words = [f"median of {seeds} seeds" if seeds > 1 else "1 seed"]
    if "diverged" in marks:
        words.append("× diverged")
    if "falling" in marks:
        words.append("▼ still falling")
    return " · ".join(words)
