"""`normviz inspect`: the anatomy of a visitor's own model."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from . import main
from .errors import complain

if TYPE_CHECKING:
    from ..own_model.report import Anatomy


@main.command()
def inspect(
    model: Annotated[
        str, typer.Argument(help="A Hugging Face model type, a config.json, or FILE.py:FUNCTION")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object")] = False,
    lint: Annotated[
        bool, typer.Option("--lint", help="Only what lint says; exit code 1 if any")
    ] = False,
    blocks: Annotated[str | None, typer.Option(help="Path of the list of blocks")] = None,
) -> None:
    """Stack, placement, norms and scales of your own model, without weights.

    A model type or a config.json needs `transformers`. NormViz uses no network, so no name on a hub.
    """
    if not model:
        complain("name a model: a model type such as qwen3, a config.json, or FILE.py:FUNCTION")
    anatomy = _anatomy(model, blocks)
    if lint:
        typer.echo("\n".join(anatomy.lint_words))
        raise typer.Exit(1 if anatomy.lint else 0)
    typer.echo(anatomy.to_json() if as_json else str(anatomy))


def _anatomy(model: str, blocks: str | None) -> Anatomy:
    from ..own_model.anatomy import inspect_named
    from ..own_model.source import is_code, offline

    if not is_code(model):
        offline()
    with quiet():
        try:
            return inspect_named(model, blocks)
        except ValueError as error:
            complain(error)


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings of a stranger's code are no findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
