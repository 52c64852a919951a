"""Errors of input on a terminal: one sentence on standard error, and exit code 2."""

from __future__ import annotations

from typing import NoReturn

import typer


def complain(sentence: object) -> NoReturn:
    """Print what is wrong and exit with code 2."""
    typer.echo(f"normviz: {sentence}", err=True)
    raise typer.Exit(2)
