"""The terminal: `normviz app`, `normviz run`, `normviz runs`, `normviz export`, and others."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__

main = typer.Typer(
    help="What does it do to a transformer where you put the norm?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"normviz {__version__}")
        raise typer.Exit


@main.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    del version


from . import app, bench, export, list_, run, runs, ship, texts  # noqa: E402, F401 (each adds its command)
