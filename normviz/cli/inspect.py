"""`normviz inspect`, `doctor` and `diff`: a visitor's own models."""

from __future__ import annotations

import json
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


Model = Annotated[
    str, typer.Argument(help="A Hugging Face model type, a config.json, or FILE.py:FUNCTION")
]
Blocks = Annotated[str | None, typer.Option(help="Path of the list of blocks")]


@main.command()
def inspect(
    model: Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object")] = False,
    lint: Annotated[bool, typer.Option("--lint", help="As `normviz doctor`")] = False,
    expect: Annotated[
        str, typer.Option(help="Keys of a placement and a norm, as pre,rmsnorm; exit code 1 if not")
    ] = "",
    blocks: Blocks = None,
) -> None:
    """Stack, placement, norms and scales of your own model, without weights.

    A model type or a config.json needs `transformers`. NormViz uses no network, so no name on a hub.
    """
    anatomy = _anatomy(model, blocks)
    if expect:
        try:
            wrong = anatomy.unexpected(expect)
        except ValueError as error:
            complain(error)
        typer.echo(wrong or f"{anatomy.name}: {expect}, as expected")
        raise typer.Exit(1 if wrong else 0)
    if lint:
        _diagnose(anatomy)
    typer.echo(anatomy.to_json() if as_json else str(anatomy))


@main.command()
def doctor(
    model: Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list")] = False,
    blocks: Blocks = None,
) -> None:
    """Look for the known bugs of norms in your own model: where, what was measured, how to mend it.

    Exit code 1 if any was found.
    """
    anatomy = _anatomy(model, blocks)
    if as_json:
        typer.echo(json.dumps(json.loads(anatomy.to_json())["findings"], ensure_ascii=False))
        raise typer.Exit(1 if anatomy.findings else 0)
    _diagnose(anatomy)


@main.command()
def diff(
    a: Annotated[str, typer.Argument(help="A model, as for `normviz inspect`")],
    b: Annotated[str, typer.Argument(help="Another one")],
) -> None:
    """Compare two models: norms, eps, gains, and each block's stream and gradient on the same input.

    The last two where both have weights. Exit code 1 if anything differs.
    """
    from ..own_model.diff import diff as compared
    from ..own_model.source import is_code, offline

    if not (is_code(a) or is_code(b)):
        offline()
    with quiet():
        try:
            difference = compared(a, b)
        except ValueError as error:
            complain(error)
    typer.echo(str(difference))
    raise typer.Exit(0 if difference.same else 1)


def _diagnose(anatomy: Anatomy) -> None:
    typer.echo("\n".join(anatomy.lint_words))
    raise typer.Exit(1 if anatomy.findings else 0)


def _anatomy(model: str, blocks: str | None) -> Anatomy:
    if not model:
        complain("name a model: a model type such as qwen3, a config.json, or FILE.py:FUNCTION")
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
