"""`normviz ship` trains the runs that ship with the product; `normviz ship-maps` runs its standard maps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..config import RunConfig
from ..cores import cores
from ..home import made, shipped
from ..lessons.presets import PRESETS, quick
from ..lessons.tour import STEPS
from ..runs.archive import load, save, save_cells
from ..runs.lane import LETTERS, Lane
from ..runs.shipped import PICTURE, save_picture
from ..runs.store import Store
from ..studies.maps import grid_of
from ..studies.maps.drive import stored
from ..studies.maps.standard import MAPS
from . import main
from .errors import complain
from .places import data_folder
from .run import follow


def shipped_lanes() -> dict[str, RunConfig]:
    """Every lane of the presets and the tour, and the hero with each quick placement, by its file name.
    Each config occurs once."""
    duels = [(preset.key, preset.lanes()) for preset in PRESETS]
    duels += [(f"tour-{step.key}", step.lanes()) for step in STEPS]
    duels += [("quick", quick())]
    named: dict[str, RunConfig] = {}
    for key, lanes in duels:
        for i, config in enumerate(lanes, start=1):
            if config not in named.values():
                named[f"{key}-{i}-{config.scheme}"] = config
    return named


@main.command()
def ship(
    folder: Annotated[Path | None, typer.Argument(help="Where to write")] = None,
    again: Annotated[bool, typer.Option(help="Also train runs that exist already")] = False,
) -> None:
    """Train the missing runs that ship on one thread, and write them to assets/runs.

    These are the lanes of the presets and the tour, and the hero with each quick placement. At last draw the
    picture of the hero.
    """
    from ..export.preview import draw

    folder = made(folder or shipped("assets") / "runs", "name another one")
    files = {config: folder / f"{name}.npz" for name, config in shipped_lanes().items()}
    for config, path in files.items():
        if path.exists() and any(load(path)) and not again:
            continue
        result = follow(config, (), threads=1)
        if result.status == "stopped":
            raise typer.Exit(130)
        save(result, path)
        typer.echo(f"{path.name}: {result.verdict.sentence}")
    lanes = [
        Lane(letter, config, tuple(load(files[config])))
        for letter, config in zip(LETTERS, PRESETS["hero"].lanes(), strict=False)
    ]
    save_picture([lane.key for lane in lanes], draw(lanes), folder / PICTURE)


# The standard maps.


@main.command()
def ship_maps(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[MAP ...]", show_default=False, help="Which maps")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that keeps the runs")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where to write (default: assets)")] = None,
) -> None:
    """Run the missing cells of the standard maps, or of those named, and write these to assets/maps.

    A cell that several maps share is written with the first of them.
    """
    from .sweep_output import follow

    try:
        wanted = {MAPS[key].key for key in keys or MAPS.keys()}
    except ValueError as error:
        complain(error)
    folder = made(folder or shipped("assets") / "maps", "choose another with --folder")
    store = Store(data_folder(data))
    written: set[str] = set()
    for standard in MAPS:
        grid = grid_of(standard.words, RunConfig())
        if standard.key not in wanted:
            written |= {cell.key for cell in grid.cells}
            continue
        ended = follow(store, grid, cores())
        if ended.was_stopped:
            raise typer.Exit(130)
        results = {cell.key: stored(store, cell.key) for cell in grid.cells}
        runs = [run for key, run in results.items() if run is not None and key not in written]
        written |= results.keys()
        path = folder / f"{standard.key}.npz"
        save_cells(map(store.recording, runs), path)
        typer.echo(f"{path.name}: {len(runs)} runs, {path.stat().st_size / 1e6:.1f} MB")
