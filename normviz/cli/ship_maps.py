"""`normviz ship-maps`: run the standard maps that ship with the product."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..config import RunConfig
from ..home import made, shipped
from ..shipped_maps import save
from ..standard import MAPS
from ..store import Store
from ..sweep import cores, read
from ..sweep.drive import stored
from . import main
from .places import data_folder


@main.command()
def ship_maps(
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where to write (default: assets)")] = None,
) -> None:
    """Run the missing cells of the standard maps and write the maps to assets/maps.

    A cell that several maps share is written with the first of them.
    """
    from .sweep_progress import follow

    folder = made(folder or shipped("assets") / "maps", "choose another with --folder")
    store = Store(data_folder(data))
    written: set[str] = set()
    for one in MAPS:
        grid = read(one.words, RunConfig())
        ended = follow(store, grid, cores(), early=True)
        if ended.was_stopped:
            raise typer.Exit(130)
        found = {cell.key: stored(store, cell.key, early=True) for cell in grid.cells}
        runs = [run for key, run in found.items() if run is not None and key not in written]
        written |= found.keys()
        path = folder / f"{one.key}.npz"
        save(store, runs, path)
        typer.echo(f"{path.name}: {len(runs)} runs, {path.stat().st_size / 1e6:.1f} MB")
