"""The result of a sweep as text, as a table file, and as a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from ..sweep import Grid
from ..sweep.points import Point
from ..sweep.summary import by_place, frontier, sensitivity
from ..sweep.words import comparisons, edge_words, said, sensitivity_words


def report(grid: Grid, points: Sequence[Point]) -> str:
    """The final losses; with a learning-rate axis also the frontier and the sensitivity."""
    if not points:
        return "no cell has ended"
    lines = [*_losses(grid, points), *_marks(points)]
    lines += [edge_words(grid, edge) for edge in frontier(grid, points)]
    for row in sensitivity(grid, points):
        lines += sensitivity_words(grid, row)
    lines += comparisons(grid, points)
    return "\n".join(lines)


def _losses(grid: Grid, points: Sequence[Point]) -> Iterator[str]:
    """A table for each combination of the other axes: the last axis in columns, the one before it in
    rows. Medians over seeds."""
    seeds = f"median of {grid.seeds} seeds" if grid.seeds > 1 else "1 seed"
    yield f"loss of the last tenth of the steps, nats per token, capped at chance ({seeds})"
    across = grid.axes[-1] if grid.axes else None
    down = grid.axes[-2] if len(grid.axes) > 1 else None
    fields = [axis.field for axis in (down, across) if axis is not None]
    for place, group in by_place(grid, points, *fields).items():
        if place:
            yield said(grid, place)
        cells = by_place(grid, group)
        if across is None:
            yield _cell(group)
            continue
        width = max(9, *(len(across.shown(value)) + 1 for value in across.values))
        corner = f"{down.field if down else ''}  {across.field} ->"
        yield f"{corner:>24}" + "".join(f"{across.shown(v):>{width}}" for v in across.values)
        for value in down.values if down else (None,):
            line = f"{down.shown(value) if down else '':>24}"
            for other in across.values:
                own = {across.field: other, **({down.field: value} if down else {}), **dict(place)}
                key = tuple((axis.field, own[axis.field]) for axis in grid.axes)
                line += f"{_cell(cells.get(key, [])):>{width}}"
            yield line


def _cell(seeds: Sequence[Point]) -> str:
    """A median with a mark: x diverged, f flat and stopped early, v still falling."""
    if not seeds:
        return "."
    marks = "".join(
        mark
        for mark, n in (
            ("x", sum(p.is_lost for p in seeds)),
            ("f", sum(p.kind == "flat" for p in seeds)),
            ("v", sum(p.falling for p in seeds)),
        )
        if 2 * n > len(seeds)
    )
    return f"{median(p.capped for p in seeds):.2f}{marks}"


def _marks(points: Sequence[Point]) -> Iterator[str]:
    """The legend of the marks in use."""
    if any(p.is_lost for p in points):
        yield "x: diverged, shown as chance"
    if any(p.kind == "flat" for p in points):
        yield "f: stopped early, flat at chance: the number is the loss at the stop"
    if any(p.falling for p in points):
        yield "v: the loss was still falling: undertrained, not unstable"


def write(grid: Grid, points: Sequence[Point], path: Path) -> None:
    """One row per cell, as Parquet or CSV."""
    from ..sweep.table import table

    rows = table(grid, points)
    if path.suffix == ".csv":
        rows.to_csv(path, index=False, na_rep="nan")
    else:
        rows.to_parquet(path, index=False)


def draw(grid: Grid, points: Sequence[Point], path: Path) -> None:
    """The maps side by side. Raises ValueError if no cell has ended."""
    from ..charts import look
    from ..charts.map import chart
    from ..export.pictures import picture
    from ..sweep.maps import maps

    if not points:
        raise ValueError("no cell has ended, so there is no map to draw")
    spec = chart(maps(grid, points))
    path.write_bytes(picture(spec, "svg" if path.suffix == ".svg" else "png", look=look(False)))
