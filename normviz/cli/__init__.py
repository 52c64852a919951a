"""The terminal: `normviz app`, `run`, `sweep`, `claims`, `runs`, `export`, `list`, and others."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..home import FolderError
from ..hosted import Misconfigured
from ..store import StoreError
from .complain import complain


class Commands(TyperGroup):
    """What is wrong with a folder, the store or the environment is a sentence in every command."""

    def invoke(self, ctx: typer.Context) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            return super().invoke(ctx)
        except (FolderError, StoreError, Misconfigured) as error:
            complain(error)


main = typer.Typer(
    cls=Commands,
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
    if isinstance(sys.stdout, io.TextIOWrapper):  # a path may hold bytes that are no text
        sys.stdout.reconfigure(errors="surrogateescape")


from . import (  # noqa: E402 (each adds its command)
    app,  # noqa: F401
    bench,  # noqa: F401
    census,  # noqa: F401
    claims,  # noqa: F401
    export,  # noqa: F401
    export_site,  # noqa: F401
    gc,  # noqa: F401
    list_,  # noqa: F401
    norms,  # noqa: F401
    run,  # noqa: F401
    runs,  # noqa: F401
    ship,  # noqa: F401
    ship_maps,  # noqa: F401
    status,  # noqa: F401
    sweep,  # noqa: F401
    texts,  # noqa: F401
)
