"""`normviz inspect`, `doctor` and `diff`: a visitor's own models."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from . import main
from .errors import complain
from .places import PICTURES, TABLES, check_file, write_picture, write_table

if TYPE_CHECKING:
    from ..own_model.report import Anatomy
    from ..own_model.weights import Growth, Weights


Model = Annotated[
    str, typer.Argument(help="A Hugging Face model type, a config.json, or FILE.py:FUNCTION")
]
Named = Annotated[
    str,
    typer.Argument(
        help="A Hugging Face model type, a config.json, FILE.py:FUNCTION, a FOLDER of save_pretrained, or a "
        "FILE.safetensors"
    ),
]
Blocks = Annotated[str | None, typer.Option(help="Path of the list of blocks")]


@main.command()
def inspect(
    model: Named = "",
    text: Annotated[
        Path | None,
        typer.Option(help="Run FOLDER's model on this text and print its stream by block"),
    ] = None,
    tokens: Annotated[
        str, typer.Option(help="Numbers of tokens, as '1 15 27', in place of --text")
    ] = "",
    dtype: Annotated[str, typer.Option(help="Run in float32 or bfloat16")] = "float32",
    out: Annotated[
        Path | None, typer.Option(help="Write one row per block to FILE.parquet or .csv")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the stream's RMS by block to FILE.svg or .png")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object")] = False,
    lint: Annotated[bool, typer.Option("--lint", help="As `normviz doctor`")] = False,
    expect: Annotated[
        str, typer.Option(help="Keys of a placement and a norm, as pre,rmsnorm; exit code 1 if not")
    ] = "",
    blocks: Blocks = None,
) -> None:
    """Stack, placement, norms and scales of your own model; of weights on disk also gains and stream.

    A model type or a config.json needs `transformers`. NormViz uses no network, so no name on a hub.

    Of a FOLDER with safetensors: the gains of its norms by block; with --text, on the CPU, also the RMS of
    the stream after each block and its largest channels, on the first 512 tokens or fewer if the model takes
    fewer. No code of a model and no pickle (.bin, .pt) is loaded.
    """
    try:
        check_file(out, TABLES, "--out")
        check_file(plot, PICTURES, "--plot")
    except ValueError as error:
        complain(error)
    asks = text is not None or bool(tokens)
    if plot is not None and not asks:
        complain("--plot draws the stream: give --text FILE or --tokens too")
    weights = None if lint or expect else _weights(model, text, tokens, dtype, blocks)
    if weights is not None:
        _print(weights, as_json, out, plot)
        return
    if asks or out is not None:
        complain(
            "--text, --tokens, --out and --plot need weights: a FOLDER with config.json and safetensors"
        )
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


def _weights(
    model: str, text: Path | None, tokens: str, dtype: str, blocks: str | None
) -> Weights | None:
    """What weights on disk tell; None where none are named."""
    from ..own_model.source import is_code, offline
    from ..own_model.weights import find, read

    if not model or is_code(model):
        return None
    offline()

    with quiet():
        try:
            files = find(model)
            return None if files is None else read(files, text, tokens, dtype, blocks)
        except ValueError as error:
            complain(error)


def _print(weights: Weights, as_json: bool, out: Path | None, plot: Path | None) -> None:
    typer.echo(weights.to_json() if as_json else str(weights))
    try:
        if out is not None:
            write_table(weights.table, out)
        if plot is not None and weights.growth is not None:
            draw(weights.growth, plot)
    except OSError as error:
        complain(error)


def draw(growth: Growth, path: Path) -> None:
    """The RMS of the stream by block, with what was measured above it."""
    from ..charts import layers
    from ..runs.names import with_names

    title, words = growth.sentences
    spec = layers.chart(with_names([growth.lane]), "stream_rms")
    write_picture(spec, [title, *wrap(words, 110)], path)


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
