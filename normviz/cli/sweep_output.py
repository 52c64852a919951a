"""The output of `normviz sweep`: its progress, and the result as text, as a table file, and as a map."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..execution import Began
from ..model.characters import TextError
from ..runs.engines import computed_by
from ..runs.store import Store
from ..studies.maps import Cell, Cluster, Done, Grid, News, SweepError, sweep
from ..studies.maps.points import Point, point
from ..studies.maps.summary import (
    by_place,
    comparisons,
    edge_words,
    frontier,
    place_name,
    sensitivity,
    sensitivity_words,
)
from .errors import complain
from .places import write_picture, write_table

LINES = 10
"""Cells in the live table: those that train, and the last that ended."""


@dataclass
class SweepEnd:
    """The results at the end, or at Ctrl-C."""

    failures: dict[Cell, str] = field(default_factory=dict)
    was_stopped: bool = False


def follow(store: Store, grid: Grid, processes: int, cluster: Cluster | None = None) -> SweepEnd:
    """Run the grid and show its progress. Ctrl-C stops it, and a lost cluster is an error; all ended
    cells are kept.

    Standard output has only the report, not Ray's messages.
    """
    ended = SweepEnd()
    progress = _Progress(grid, ended)
    is_terminal = sys.stderr.isatty()
    console = Console(stderr=True)
    try:
        with (
            Live(console=console, transient=True, auto_refresh=False)
            if is_terminal
            else redirect_stdout(sys.stderr) as live
        ):
            for news in sweep(store, grid, processes, cluster=cluster):
                line = progress.take(news)
                if isinstance(live, Live):
                    live.update(progress.drawn(), refresh=True)
                elif line:
                    typer.echo(line, err=True)
    except KeyboardInterrupt:
        ended.was_stopped = True
    except (SweepError, TextError) as error:
        complain(error)
    for cell, message in ended.failures.items():
        typer.echo(f"normviz: {progress.name(cell)} failed: {message}", err=True)
    return ended


class _Progress:
    """The state of the cells so far."""

    def __init__(self, grid: Grid, ended: SweepEnd) -> None:
        self.grid, self.ended = grid, ended
        self.running: list[Cell] = []
        self.last: list[tuple[Cell, str, str]] = []
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self.bar = self.progress.add_task("cells", total=len(grid.cells))
        self.n = 0

    def take(self, news: News) -> str | None:
        """Record the news; returns a line if a cell was trained."""
        if isinstance(news, Began):
            self.running.append(news.task)
            return None
        self.n += 1
        self.progress.advance(self.bar)
        if not isinstance(news, Done):
            return None
        self.running.remove(news.cell)
        outcome = self._outcome(news)
        seconds = f"{news.measured.seconds:.1f} s"
        self.last = [*self.last, (news.cell, outcome, seconds)][-LINES:]
        return f"{self.n} of {len(self.grid.cells)}  {self.name(news.cell)}: {outcome} ({seconds})"

    def _outcome(self, done: Done) -> str:
        if not done.measured.id:
            self.ended.failures[done.cell] = done.measured.message or "it ended without a message"
            return "failed"
        return point(done.cell, done.measured).sentence

    def name(self, cell: Cell) -> str:
        """A cell's values on the axes, and its seed."""
        words = [
            f"{axis.field}={axis.shown(axis.values[i])}"
            for axis, i in zip(self.grid.axes, cell.at, strict=True)
        ]
        return (
            " ".join([*words, f"seed {cell.seed}"] if self.grid.seeds > 1 else words) or "the run"
        )

    def drawn(self) -> Group:
        """The table of the last cells, above the bar."""
        table = Table(box=None, pad_edge=False)
        for axis in self.grid.axes:
            table.add_column(axis.field)
        if self.grid.seeds > 1:
            table.add_column("seed")
        table.add_column("result")
        table.add_column("seconds", justify="right")
        for cell, outcome, seconds in self.last:
            table.add_row(*self._places(cell), outcome, seconds.removesuffix(" s"))
        for cell in self.running:
            table.add_row(*self._places(cell), "training", "")
        return Group(table, self.progress)

    def _places(self, cell: Cell) -> list[str]:
        places = [
            axis.shown(axis.values[i]) for axis, i in zip(self.grid.axes, cell.at, strict=True)
        ]
        return [*places, str(cell.seed)] if self.grid.seeds > 1 else places


# The result.


def report(grid: Grid, points: Sequence[Point]) -> str:
    """The final losses; with a learning-rate axis also the frontier and the sensitivity."""
    if not points:
        return "no cell has ended"
    lines = [*_losses(grid, points), *_marks(points)]
    lines += [edge_words(grid, edge) for edge in frontier(grid, points)]
    for row in sensitivity(grid, points):
        lines += sensitivity_words(grid, row)
    lines += comparisons(grid, points)
    lines.append(computed_by((cell.engine for cell in points), "cells"))
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
            yield place_name(grid, place)
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
    """A median with a mark: x diverged, v still falling."""
    if not seeds:
        return "."
    marks = "".join(
        mark
        for mark, n in (
            ("x", sum(p.is_lost for p in seeds)),
            ("v", sum(p.falling for p in seeds)),
        )
        if 2 * n > len(seeds)
    )
    return f"{median(p.capped for p in seeds):.2f}{marks}"


def _marks(points: Sequence[Point]) -> Iterator[str]:
    """The legend of the marks in use."""
    if any(p.is_lost for p in points):
        yield "x: diverged, shown as chance"
    if any(p.falling for p in points):
        yield "v: the loss still fell at the last step"


def write(grid: Grid, points: Sequence[Point], path: Path) -> None:
    """One row per cell, as Parquet or CSV."""
    from ..studies.maps.summary import table

    write_table(table(grid, points), path)


def draw(grid: Grid, points: Sequence[Point], path: Path) -> None:
    """The maps side by side. Raises ValueError if no cell has ended."""
    from ..charts.map import chart
    from ..studies.maps.layout import maps, spanned
    from ..studies.maps.link import caption

    if not points:
        raise ValueError("no cell has ended, so there is no map to draw")
    across, up = spanned(grid)
    origin = caption(grid, across.field, up.field)
    origin.append(computed_by((cell.engine for cell in points), "cells"))
    write_picture(chart(maps(grid, points)), origin, path)
