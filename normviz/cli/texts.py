"""`normviz texts`: list the stored texts, or delete one."""

from __future__ import annotations

from typing import Annotated

import typer

from ..limits import MAX_TEXTS
from ..model import texts as kept_texts
from ..model.characters import TextError
from ..runs.store import Store, StoreError
from . import main
from .errors import complain


@main.command()
def texts(
    delete: Annotated[str, typer.Option(metavar="HASH", help="Delete this text")] = "",
) -> None:
    """List the texts that runs here may train on, most recently used first, or delete one."""
    if delete:
        _delete(delete)
        return
    keys = kept_texts.listed()
    for key in keys:
        typer.echo(f"{key}  {_about(key)}")
    typer.echo(
        f"{len(keys)} of at most {MAX_TEXTS}. One more deletes the least recently used text that no open "
        "run reads and no run whose link was copied"
    )


def _delete(key: str) -> None:
    try:
        there = kept_texts.delete(key)
    except TextError as error:
        complain(error)
    if not there:
        complain(f"no text of the hash {key} is kept here: `normviz texts` lists those that are")
    try:
        Store().drop_writing(kept_texts.listed())
    except StoreError as error:
        complain(error)
    typer.echo(
        f"deleted {key}, and what models that trained on it wrote; the curves of their runs stay"
    )


def _about(key: str) -> str:
    try:
        return kept_texts.about(key).sentence()
    except TextError:
        return "damaged: delete it"
