"""The progress of a sweep: a bar and the last cells on a terminal, else one line per cell."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..store import Store
from ..sweep import Began, Cell, Cluster, Done, Grid, News, SweepError, sweep
from ..sweep.points import Point, point, read
from .complain import complain

LINES = 10
"""Cells in the live table: those that train, and the last that ended."""


@dataclass
class Ended:
    """The results at the end, or at Ctrl-C."""

    failures: dict[Cell, str] = field(default_factory=dict)
    was_stopped: bool = False

    def points(self, store: Store, grid: Grid, early: bool) -> list[Point]:
        """The points of all cells that have a result."""
        return read(store, grid, early)


def follow(
    store: Store, grid: Grid, processes: int, early: bool, cluster: Cluster | None = None
) -> Ended:
    """Run the grid and show its progress. Ctrl-C stops it, and a lost cluster is an error; all ended
    cells are kept.

    Standard output has only the report, not Ray's messages.
    """
    ended = Ended()
    board = _Board(grid, ended)
    is_terminal = sys.stderr.isatty()
    console = Console(stderr=True)
    try:
        with (
            Live(console=console, transient=True, auto_refresh=False)
            if is_terminal
            else redirect_stdout(sys.stderr) as live
        ):
            for news in sweep(store, grid, processes, early, cluster=cluster):
                line = board.take(store, news)
                if isinstance(live, Live):
                    live.update(board.drawn(), refresh=True)
                elif line:
                    typer.echo(line, err=True)
    except KeyboardInterrupt:
        ended.was_stopped = True
    except SweepError as error:
        complain(error)
    for cell, message in ended.failures.items():
        typer.echo(f"normviz: {board.name(cell)} failed: {message}", err=True)
    return ended


class _Board:
    """The state of the cells so far."""

    def __init__(self, grid: Grid, ended: Ended) -> None:
        self.grid, self.ended = grid, ended
        self.running: list[Cell] = []
        self.last: list[tuple[Cell, str, str]] = []
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self.bar = self.progress.add_task("cells", total=len(grid.cells))
        self.n = 0

    def take(self, store: Store, news: News) -> str | None:
        """Record the news; returns a line if a cell was trained."""
        if isinstance(news, Began):
            self.running.append(news.cell)
            return None
        self.n += 1
        self.progress.advance(self.bar)
        if not isinstance(news, Done):
            return None
        self.running.remove(news.cell)
        said = self._said(store, news)
        seconds = f"{news.measured.seconds:.1f} s"
        self.last = [*self.last, (news.cell, said, seconds)][-LINES:]
        return f"{self.n} of {len(self.grid.cells)}  {self.name(news.cell)}: {said} ({seconds})"

    def _said(self, store: Store, done: Done) -> str:
        run = None if done.run is None else store.run(done.run)
        if run is None:
            self.ended.failures[done.cell] = done.measured.message or "it ended without a message"
            return "failed"
        return point(done.cell, run, store.losses(run.id)).sentence

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
        for cell, said, seconds in self.last:
            table.add_row(*self._places(cell), said, seconds.removesuffix(" s"))
        for cell in self.running:
            table.add_row(*self._places(cell), "training", "")
        return Group(table, self.progress)

    def _places(self, cell: Cell) -> list[str]:
        places = [
            axis.shown(axis.values[i]) for axis, i in zip(self.grid.axes, cell.at, strict=True)
        ]
        return [*places, str(cell.seed)] if self.grid.seeds > 1 else places
