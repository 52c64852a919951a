"""`normviz gc`: delete runs from the store, the oldest first."""

from __future__ import annotations

from typing import Annotated

import typer

from ..execution.client import is_supervised
from ..policy import STORE_BYTES
from ..runs.store import Store, StoreError, retention
from . import main
from .errors import complain

IN_USE = "a server uses it; `normviz gc` without a server makes it smaller"
"""No worker could commit while the file is rewritten."""


@main.command()
def gc(
    mb: Annotated[
        int | None,
        typer.Option(
            min=1, max=10**7, help="Megabytes to keep (default: $NORMVIZ_STORE_MB or 500)"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be deleted")
    ] = False,
    linked: Annotated[
        bool, typer.Option("--linked", help="Also runs whose link was copied")
    ] = False,
) -> None:
    """Delete the oldest runs until the store fits. Shipped, open and linked runs stay."""
    try:
        store = Store()
        limit = mb * 10**6 if mb else store.policy.store_bytes or STORE_BYTES
        before = retention.size(store)
        gone = (
            retention.would_drop(store, limit, linked) if dry_run else _drop(store, limit, linked)
        )
    except StoreError as error:
        complain(error)
    done = "would delete about" if dry_run else "deleted"
    typer.echo(
        f"{before / 1e6:,.1f} MB, at most {limit / 1e6:,.0f} MB wanted: {done} {len(gone):,} runs"
        + (f", the first {gone[0]}, the last {gone[-1]}" if gone else "")
    )
    if dry_run:
        return
    typer.echo(f"{retention.size(store) / 1e6:,.1f} MB now")
    if retention.size(store) >= limit:
        typer.echo("all other runs ship, are open or are linked; --linked deletes linked runs too")


def _drop(store: Store, limit: int, linked: bool) -> list[int]:
    gone = list(retention.drop(store, limit, linked=linked))
    free = store.db.connection.execute("PRAGMA freelist_count").fetchone()[0]
    if free and (why := IN_USE if is_supervised(store) else retention.shrink(store)):
        typer.echo(
            f"the file keeps its size for now, and new runs reuse its space: {why}", err=True
        )
    return gone
