"""`normviz ship`: train the runs that ship with the product."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..config import RunConfig
from ..home import made, shipped
from ..presets import PRESETS
from ..shipped import load, save
from ..tour import STEPS
from . import main
from .run import follow


def shipped_lanes() -> dict[str, RunConfig]:
    """Every lane of the presets and the tour by its file name, each config once."""
    duels = [(preset.key, preset.lanes()) for preset in PRESETS]
    duels += [(f"tour-{step.key}", step.lanes()) for step in STEPS]
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
    """Train every lane of the presets and the tour on one thread and write them to assets/runs."""
    folder = made(folder or shipped("assets") / "runs", "name another one")
    for name, config in shipped_lanes().items():
        path = folder / f"{name}.npz"
        if path.exists() and load(path) is not None and not again:
            continue
        result = follow(config, (), threads=1)
        if result.status == "stopped":
            raise typer.Exit(130)
        save(result, path)
        typer.echo(f"{path.name}: {result.verdict.sentence}")
