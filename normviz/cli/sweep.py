"""`normviz sweep key=a,b,c ...`: every combination, in one process per core."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from ..cores import cores
from ..formats import duration
from ..limits import MAX_SWEEP_CELLS, MAX_SWEEP_HOURS
from ..links import cut, shown
from ..runs import shipped
from ..runs.shipped import adopt
from ..runs.store import Store, StoreError
from ..studies.maps import (
    Cell,
    Cluster,
    Grid,
    estimate,
    gpus_of_a_grid,
    grid_of,
    read_address,
    reused,
)
from ..studies.maps.layout import spanned
from ..studies.maps.points import read_points
from . import main
from .errors import complain
from .places import PICTURES, TABLES, check_file, data_folder
from .run import read_lanes, read_words


@main.command()
def sweep(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LINK or preset] [key=a,b,c ...] [seeds=N]", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write one row per cell to FILE.parquet or .csv")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the map to FILE.svg or .png")] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=256, help="Cells at once (default: the cores)")
    ] = None,
    on: Annotated[
        str, typer.Option(help="Where: local, ray (started here), ray:auto or ray:HOST:PORT")
    ] = "local",
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
) -> None:
    """Run every combination of the settings' values and report which ones train.

    Stored cells are not run again: after Ctrl-C the same command continues.
    """
    from .sweep_output import draw, follow, report, write

    try:
        check_file(out, TABLES, "--out")
        check_file(plot, PICTURES, "--plot")
        address = read_address(on)
        names, values = read_words(words or [])
        first, *others = read_lanes(names[0] if names else "hero")
        if names and others:
            typer.echo(
                f"normviz: {cut(names[0])} has {1 + len(others)} lanes: the sweep takes its settings from "
                "lane A, give others as key=value",
                err=True,
            )
        hours = inf if address else MAX_SWEEP_HOURS
        grid = grid_of(values, first, MAX_SWEEP_CELLS, hours)
        if plot is not None:
            spanned(grid)
        store = Store(data_folder(data))
        adopt(store)
        if any(cell.key in shipped.cell_keys() for cell in grid.cells):
            shipped.adopt_cells(store)
        at_once = processes or cores()
        device, kept = reused(store, grid, at_once, address is not None)
        left = [cell for cell in grid.cells if cell not in kept]
        cluster = Cluster(address, processes) if address and left else None
    except (ValueError, StoreError) as error:
        complain(error)
    typer.echo(announce(grid, left, *_where(left, device, at_once, cluster)), err=True)
    ended = follow(store, grid, at_once, cluster)
    points = read_points(store, grid)
    typer.echo(report(grid, points))
    try:
        if out is not None:
            write(grid, points, out)
        if plot is not None:
            draw(grid, points, plot)
    except (OSError, ValueError) as error:
        complain(error)
    if ended.was_stopped:
        typer.echo("normviz: stopped; the same command runs what is missing", err=True)
        raise typer.Exit(130)
    if ended.failures:
        raise typer.Exit(1)


def _where(
    left: Sequence[Cell], device: str, processes: int, cluster: Cluster | None
) -> tuple[float, str]:
    """The estimated seconds for cells, and in words where they train."""
    gpus = cluster.gpus if cluster else len(gpus_of_a_grid())
    if cluster:
        processes = max(1, cluster.at_once(left))
        device = "cuda" if any(cell.config.device == "cuda" for cell in left) else "cpu"
    words = f"in {processes} processes"
    if device == "cuda" and not cluster:
        words = f"in stacks on {'the GPU' if gpus == 1 else f'{gpus} GPUs'}"
    return estimate(left, device, processes, gpus), words


def announce(grid: Grid, left: Sequence[Cell], seconds: float, where: str) -> str:
    """The number of runs, their axes, and the estimated seconds for those that are `left`."""
    axes = " x ".join(f"{len(axis.values)} {axis.field}" for axis in grid.axes) or "1 setting"
    if grid.seeds > 1:
        axes += f" x {grid.seeds} seeds"
    n, missing = len(grid.cells), len(left)
    base = ", ".join(
        shown(name, getattr(grid.base, name))
        for name in ("scheme", "init", "task")
        if grid.axis(name) is None
    )
    stored = f", {n - missing} of them stored" if missing < n else ""
    todo = f"; about {duration(seconds)} {where}" if missing else ""
    return f"{n} run{'s' * (n != 1)}: {axes} ({base}, {grid.base.steps} steps){stored}{todo}"
