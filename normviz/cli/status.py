"""`normviz status`: the state of this data folder's server; exit code 1 if it is not well."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from ..config import engine_here
from ..execution.health import Health, read_twice, unreadable
from ..home import FolderError
from ..runs.listing import ago
from ..runs.store import Store, StoreError
from ..runs.store.counts import StoreCounts
from . import main

WORDS = {
    "dead": "none: start one with `normviz app`",
    "failing": "fails to start workers",
    "silent": "hangs: it does not answer; a server replaces it when a page is opened",
}


@main.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Print the state of supervisor, queue and store. Exit code 1 without a working supervisor, a readable
    store, or free space on the disk. The last line names the engine that trains, and why."""
    try:
        health = read_twice(Store())
    except (FolderError, StoreError, OSError) as error:
        health = unreadable(error)
    if as_json:
        name, why = engine_here()
        typer.echo(json.dumps({**health.as_json(), "engine": name, "engine_why": why}))
    else:
        typer.echo("\n".join((*report(health, time.time()), engine_line())))
    if not health.is_well:
        raise typer.Exit(1)


def report(health: Health, now: float) -> list[str]:
    """The report's lines; `now` in seconds since 1970."""
    if health.census is None:
        return [f"store       {health.store}"]
    words = WORDS.get(health.supervisor, health.supervisor)
    census = health.census
    lines = [
        f"supervisor  {words}",
        f"workers     {health.workers}",
        f"runs        {census.queued} wait, {census.running} train, {census.paused} paused, "
        f"of {census.visitors} visitors",
        f"store       {_size(census, health.limit)}",
        f"            {census.runs:,} runs, {census.shipped:,} shipped, {census.linked:,} linked",
    ]
    lines += [
        f"            {text}" for text in (health.disk, health.failing, health.refuses) if text
    ]
    if census.oldest is not None:
        lines.append(f"oldest      {ago(census.oldest, now)}")
    for failure in census.failures:
        lines.append(f"failed      run {failure.run}, {ago(failure.at, now)}: {failure.message}")
    return lines


def engine_line() -> str:
    """The engine of runs on this machine, and why it is not the tape."""
    name, why = engine_here()
    return f"engine      {name}: {why}" if why else f"engine      {name}"


def _size(census: StoreCounts, limit: int | None) -> str:
    of = "" if limit is None else f" of at most {limit / 1e6:,.0f} MB"
    return f"{census.bytes / 1e6:,.1f} MB{of}"
