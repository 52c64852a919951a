"""The size of the store, and which runs are deleted when it is full: the oldest, never one that ships or
is open. Runs with a copied or opened link are deleted last, and the store remembers their keys, so that
their link can explain why they are missing."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .errors import StoreError
from .rows import IS_OPEN

if TYPE_CHECKING:
    from . import Store

LOG = logging.getLogger(__name__)
MAY_GO = f"origin NOT LIKE 'shipped%' AND NOT {IS_OPEN} AND linked <= ?"
ORDER = "ORDER BY linked, id"
REMEMBERED = 10_000
"""The number of deleted runs with links whose keys are kept: about a megabyte."""
RUN_BYTES, STEP_BYTES = 2000, 50
"""Rough bytes of a run, and of a step without its layers; for the estimate of `would_drop`."""


def used(db: sqlite3.Connection) -> int:
    """Bytes of the file in use; the space of deleted runs is used again."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def size(store: Store) -> int:
    """Bytes that a store's runs take."""
    return used(store.db.connection)


def is_full(store: Store) -> bool:
    """Whether the store has reached its policy's limit in bytes and no run in it may be deleted."""
    db, limit = store.db.connection, store.policy.store_bytes
    if limit is None or used(db) < limit:
        return False
    return db.execute(f"SELECT 1 FROM runs WHERE {MAY_GO} LIMIT 1", (1,)).fetchone() is None


def drop(store: Store, limit: int, goal: int | None = None, linked: bool = False) -> Iterator[int]:
    """In a store that has reached its limit in bytes, delete the oldest runs that may be deleted, one
    write each, until it takes less than `goal` (by default the limit) bytes.

    Yields the numbers of the deleted runs. With `linked` linked runs may be deleted too, last.
    """
    goal = limit if goal is None else goal
    if size(store) < limit:
        return
    while size(store) >= goal and (run := _drop_oldest(store, linked)) is not None:
        yield run


def _drop_oldest(store: Store, linked: bool) -> int | None:
    """Delete one run and return its number; None where none may be deleted or the write fails."""
    try:
        with store.db.transaction() as db:
            row = db.execute(
                f"SELECT id, key, linked FROM runs WHERE {MAY_GO} {ORDER} LIMIT 1", (int(linked),)
            ).fetchone()
            if row is not None:
                db.execute("DELETE FROM runs WHERE id = ?", (row["id"],))  # its steps go with it
                if row["linked"]:
                    _remember(db, row["key"])
    except StoreError as error:  # a full disk
        LOG.warning("no room could be made in the store: %s", error)
        return None
    return None if row is None else row["id"]


def _remember(db: sqlite3.Connection, key: str) -> None:
    db.execute("INSERT OR REPLACE INTO dropped VALUES (?, ?)", (key, time.time()))
    db.execute(
        "DELETE FROM dropped WHERE key IN (SELECT key FROM dropped ORDER BY at DESC LIMIT -1 OFFSET ?)",
        (REMEMBERED,),
    )


def dropped(store: Store, keys: Sequence[str]) -> dict[str, float]:
    """Of these keys those of deleted runs with a link: when each was deleted, in seconds since 1970."""
    rows = store.db.connection.execute(
        f"SELECT key, at FROM dropped WHERE key IN ({', '.join('?' * len(keys))})", list(keys)
    )
    return {row["key"]: row["at"] for row in rows}


def would_drop(store: Store, limit: int, linked: bool = False) -> list[int]:
    """The numbers of the runs that `drop` would delete, estimated from the sizes of their steps."""
    over = size(store) - limit
    rows = store.db.connection.execute(
        "SELECT id, (SELECT SUM(COALESCE(LENGTH(layers), 0) + ?) FROM steps WHERE run = runs.id) "
        f"FROM runs WHERE {MAY_GO} {ORDER}",
        (STEP_BYTES, int(linked)),
    )
    gone: list[int] = []
    while over >= 0 and (row := rows.fetchone()):
        gone.append(row[0])
        over -= RUN_BYTES + (row[1] or 0)
    return gone


def shrink(store: Store) -> str | None:
    """Return the space of deleted runs to the system. Returns the error as a sentence, or None."""
    try:
        store.db.connection.execute("VACUUM")
        store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (StoreError, sqlite3.Error) as error:
        return str(error)
    return None


def link(store: Store, runs: list[int]) -> None:
    """Mark runs as linked, so that they are deleted last. Where that can't be written it is logged."""
    unmarked = f"id IN ({', '.join('?' * len(runs))}) AND linked = 0"
    db = store.db.connection
    try:
        if runs and db.execute(f"SELECT 1 FROM runs WHERE {unmarked}", runs).fetchone():
            db.execute(f"UPDATE runs SET linked = 1 WHERE {unmarked}", runs)
    except StoreError as error:  # a full disk: the page is shown all the same
        LOG.warning("runs %s could not be marked as linked: %s", runs, error)
