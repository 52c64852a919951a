"""`normviz ship`: train the runs that ship with the product."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..home import shipped
from ..presets import PRESETS
from ..shipped import save
from . import main
from .run import follow

SHIPPED = ("hero",)


@main.command()
def ship(
    folder: Annotated[Path | None, typer.Argument(help="Where to write")] = None,
) -> None:
    """Train every lane of the shipped presets on one thread and write them to assets/runs."""
    folder = folder or shipped("assets") / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    for key in SHIPPED:
        for i, config in enumerate(PRESETS[key].lanes(), start=1):
            result = follow(config, (), threads=1)
            path = folder / f"{key}-{i}-{config.scheme}.npz"
            save(result, path)
            typer.echo(f"{path.name}: {result.verdict.sentence}")
