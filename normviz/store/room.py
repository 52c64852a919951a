"""How large the store is, and which runs go when it is full: the oldest, never one that ships, that
is open, or whose link somebody may have."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Store

MAY_GO = (
    "origin NOT LIKE 'shipped%' AND status NOT IN ('queued', 'running', 'paused') AND linked <= ?"
)
ROOM = 0.05
"""Of the limit, freed beyond it, so that not every new run has to make its own room."""


def used(db: sqlite3.Connection) -> int:
    """Bytes of the file that hold something; what runs left behind is used again."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def is_full(db: sqlite3.Connection, limit: int) -> bool:
    """Whether the store has reached its limit and nothing in it may go."""
    if used(db) < limit:
        return False
    return db.execute(f"SELECT 1 FROM runs WHERE {MAY_GO} LIMIT 1", (0,)).fetchone() is None


def drop(store: Store, limit: int, linked: bool = False) -> Iterator[int]:
    """Delete the oldest runs that may go until the store is below its limit, one write each.

    Yields the numbers of the runs that went. `linked` says that linked ones may go too.
    """
    db = store.db.connection
    if used(db) < limit:
        return
    while used(db) >= limit * (1 - ROOM):
        with store.db.transaction() as writing:
            row = writing.execute(
                f"SELECT id FROM runs WHERE {MAY_GO} ORDER BY id LIMIT 1", (int(linked),)
            ).fetchone()
            if row is None:
                return
            writing.execute("DELETE FROM runs WHERE id = ?", (row["id"],))
        yield row["id"]


def link(store: Store, runs: list[int]) -> None:
    """Somebody has the link of these runs: they stay."""
    marks = ", ".join("?" * len(runs))
    db = store.db.connection
    known = f"id IN ({marks}) AND linked = 0"
    if runs and db.execute(f"SELECT 1 FROM runs WHERE {known}", runs).fetchone():
        db.execute(f"UPDATE runs SET linked = 1 WHERE {known}", runs)
