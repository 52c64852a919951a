"""The errors of the store's file while it is used, each with one sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...home import Unusable


class StoreError(Unusable, RuntimeError):
    """The store can't be used; the sentence says why and how to mend it."""


class StoreFull(StoreError):
    """The disk has no space for a write; everything committed before is kept."""


class StoreUnreadable(StoreError):
    """One run can't be read; all others can."""


class StoreDamaged(StoreError):
    """The file is damaged or of another schema: see `repair`, which sets it aside."""


DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is damaged, and not only that it can't be used now."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED


def is_busy(error: sqlite3.Error) -> bool:
    """Whether an error means that another connection uses the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def as_store_error(error: sqlite3.Error, path: Path) -> Exception:
    """The error as a StoreError, where it is about the file; an error about the statement is unchanged."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in DAMAGED:
        return StoreDamaged(
            f"the store {path} is damaged and can't be opened or read ({error}): start `normviz app`, "
            "which sets it aside and begins a fresh one, or move the file away"
        )
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return StoreFull(
            f"the store {path} can't be written or read ({error}): the disk may be full, so make room "
            "and try again; everything committed before is kept"
        )
    if is_busy(error):
        return StoreError(
            f"the store {path} is in use by another process that has not let go of it ({error}): try "
            "again in a moment"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(
            f"the store {path} can't be opened ({error}): set NORMVIZ_HOME to a folder that can be "
            "written, or move the file away"
        )
    return error


class Connection(sqlite3.Connection):
    """A connection whose errors about the file are sentences. It closes with the last name that it has."""

    def __init__(self, path: Path, *words: Any, **more: Any) -> None:
        self.path = path
        super().__init__(path, *words, **more)

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # of one that was never opened
            self.close()

    def execute(self, sql: str, values: Any = ()) -> Cursor:
        """Run one statement. Raises StoreError where the file can't be used."""
        return self.cursor(Cursor).execute(sql, values)

    def executemany(self, sql: str, values: Iterable[Any]) -> Cursor:
        """Run one statement for each tuple of values. Raises StoreError where the file can't be used."""
        return self.cursor(Cursor).executemany(sql, values)


class Cursor(sqlite3.Cursor):
    """A cursor whose errors about the file are sentences, also those found while rows are read."""

    connection: Connection

    def execute(self, sql: str, values: Any = ()) -> Cursor:
        """Run one statement. Raises StoreError where the file can't be used."""
        try:
            return super().execute(sql, values)
        except sqlite3.Error as error:
            raise as_store_error(error, self.connection.path) from None

    def executemany(self, sql: str, values: Iterable[Any]) -> Cursor:
        """Run one statement for each tuple of values. Raises StoreError where the file can't be used."""
        try:
            return super().executemany(sql, values)
        except sqlite3.Error as error:
            raise as_store_error(error, self.connection.path) from None

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.Error as error:
            raise as_store_error(error, self.connection.path) from None

    def fetchone(self) -> Any:
        """The next row, or None after the last. Raises StoreError where the file can't be read."""
        return next(self, None)

    def fetchall(self) -> list[Any]:
        """All rows that are left. Raises StoreError where the file can't be read."""
        return list(self)
