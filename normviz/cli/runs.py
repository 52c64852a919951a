"""`normviz runs`: list the stored runs, or delete one."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from ..catalog import NORMS, TASKS
from ..config import seeds_of
from ..observed import Observed, label
from ..runs.listing import ListRow, RunList, ago, described, seconds
from ..runs.search import search
from ..runs.store import Query, Store, StoreError
from . import main
from .errors import complain

WIDE = 200
"""Width of the table in characters if the output is not a terminal."""


@main.command()
def runs(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD ...]", help="As in the page's search")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many")] = 20,
    delete: Annotated[
        int | None,
        typer.Option(min=1, max=2**63 - 1, metavar="ID", help="Delete this run with all its steps"),
    ] = None,
) -> None:
    """List the stored runs of the app, newest first, sweeps and shipped ones last, or delete one."""
    try:
        store = Store()
        if delete is not None:
            _delete(store, delete)
            return
        asked = search(" ".join(words or []))
        if asked.too_long:
            complain(asked.too_long)
        if asked.unknown:
            complain(f"nothing is called {', '.join(asked.unknown)}: `normviz list` has all names")
        page = RunList(store).page(Query(asked.clauses), limit)
    except StoreError as error:
        complain(error)
    if page.rows:
        _print(page.rows)
    typer.echo(f"{len(page.rows):,} of {page.total:,} runs in {store.folder}")
    if n := len(page.foreign):
        typer.echo(
            f"{n} more come from another release of NormViz, or are damaged, and can't be shown"
        )


def _delete(store: Store, run: int) -> None:
    if why := store.delete(run):
        complain(why)
    typer.echo(f"deleted run {run}")


def _print(rows: tuple[ListRow, ...]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "when", "placement", "norm", "task", "settings", "came out"):
        table.add_column(name, overflow="fold")
    table.add_column("loss", justify="right")
    table.add_column("device")
    table.add_column("s", justify="right")
    now = time.time()
    for row in rows:
        table.add_row(*(Text(cell) for cell in _cells(row, now)))
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def _cells(row: ListRow, now: float) -> tuple[str, ...]:
    """The cells of a row."""
    run, config = row.run, row.run.config
    took = seconds(run)
    norm = config.norm if isinstance(config, Observed) else config.placed().norm
    task = "" if isinstance(config, Observed) else TASKS.label(config.task)
    seed = "" if isinstance(config, Observed) else seeds_of(config)
    return (
        str(run.id),
        "shipped" if run.is_shipped else ago(run.created, now),
        label(config),
        NORMS.label(norm) if norm else "",
        task,
        ", ".join(filter(None, (described(config), seed))),
        row.words if not run.is_open else f"{row.words}, {row.steps} steps so far",
        row.loss,
        run.started.device if run.started else "",
        "" if took is None else f"{took:.1f}",
    )
