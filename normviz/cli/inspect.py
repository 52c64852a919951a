"""`normviz inspect`: the anatomy of a visitor's own model."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..own_model import shipped
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
    compare: Annotated[
        bool, typer.Option("--compare", help="The shipped anatomies beside the census")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Make the shipped anatomies anew")] = False,
    out: Annotated[Path, typer.Option(help="File of --all and --compare")] = shipped.TABLE,
) -> None:
    """Stack, placement, norms and scales of your own model, without weights.

    A model type or a config.json needs `transformers`. NormViz uses no network, so no name on a hub.
    """
    if compare:
        typer.echo(comparison(out))
        return
    if every:
        make_all(out)
        return
    if not model:
        complain("name a model: a model type such as qwen3, a config.json, or FILE.py:FUNCTION")
    found = _found(model, blocks)
    if lint:
        typer.echo("\n".join(found.lint_words))
        raise typer.Exit(1 if found.lint else 0)
    typer.echo(found.to_json() if as_json else str(found))


def _found(model: str, blocks: str | None) -> Anatomy:
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


def make_all(out: Path) -> None:
    """Add each model type of the census that the file lacks, and sort the file."""
    from ..catalog.models import census
    from ..own_model.anatomy import inspect_named
    from ..own_model.source import offline

    offline()
    known = set(shipped.anatomies(out))
    for kind in dict.fromkeys(row.model for row in census().all if row.model not in known):
        with quiet():
            try:
                found = inspect_named(kind)
            except Exception as error:  # whatever a model's code raises is its row
                found = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        with out.open("a", encoding="utf-8") as file:
            file.write(shipped.line(kind, found) + "\n")
        typer.echo(f"{kind}: {found if isinstance(found, str) else found.main.placement_words}")
    out.write_text("\n".join(sorted(out.read_text(encoding="utf-8").splitlines())) + "\n", "utf-8")


def comparison(path: Path) -> str:
    """Each row where the census and the data flow do not both name the same, and the counts."""
    every = [*shipped.compared(path)]
    count = Counter(it.outcome for it in every)
    lines = [
        f"{len(every)} rows of the census: " + "; ".join(f"{n} {k}" for k, n in count.most_common())
    ]
    for it in every:
        if it.outcome != shipped.AGREES:
            here = it.stack.placement if it.stack else None
            lines.append(
                f"{it.row.model:28} {it.outcome:24} code: {it.row.placement or '-':14} data flow: "
                f"{here or '-':14} {it.why}"
            )
    lines += ["", "fields that differ:"]
    for it in every:
        if found := shipped.differences(it):
            lines.append(f"{it.row.model:28} {'; '.join(found)}: {shipped.reasons(it.row.model)}")
    return "\n".join(lines)
