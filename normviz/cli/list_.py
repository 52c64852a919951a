"""`normviz list`: all choices, probes and presets, from the records."""

from __future__ import annotations

from typing import Annotated

import typer

from ..catalog import PROBES, own
from ..catalog.models import census
from ..config import CHOICES, RANGES, SETTINGS, summary
from ..lessons.presets import PRESETS
from . import main
from .census import table as model_table
from .parity import against, table


@main.command("list")
def list_(
    parity: Annotated[
        bool,
        typer.Option("--parity", help="Instead, the reference that each record was tested against"),
    ] = False,
    models: Annotated[
        bool, typer.Option("--models", help="Instead, norms and placements of real models")
    ] = False,
) -> None:
    """Print every choice, probe and preset with its meaning."""
    if parity:
        typer.echo(table())
        return
    if models:
        typer.echo(model_table(census()))
        return
    for field, registry in CHOICES.items():
        typer.echo(field)
        for record in registry:
            typer.echo(
                f"  {record.key:18} {record.label}: {record.sentence}{against(field, record)}"
            )
        if registry.made is not None:
            typer.echo(f"  {own.PREFIX + 'WORD:...':18} {own.ABOUT}")
    typer.echo("numbers")
    for name, range_ in RANGES.items():
        about = ", ".join(filter(None, (SETTINGS[name].title, SETTINGS[name].about)))
        typer.echo(f"  {name:18} {about}: {range_.text()}")
    typer.echo("probes")
    for probe in PROBES:
        typer.echo(f"  {probe.key:14} {probe.label} ({probe.unit}): {probe.whole}")
    typer.echo("presets")
    for preset in PRESETS:
        typer.echo(f"  {preset.key:12} {preset.label}: {preset.question}")
    typer.echo(summary())
