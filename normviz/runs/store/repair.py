"""Opening a store that may be damaged or of another schema: the file is moved aside, kept, and a fresh one is
begun, into which the runs of a damaged one come that can be read."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from filelock import FileLock

from ...home import home
from ...policy import Policy
from . import Store
from .errors import StoreDamaged, StoreError, is_busy, is_damage
from .lock_file import is_held, supervisor_lock
from .schema import FILE, SCHEMA, VERSION, schema_of

TABLES = set(re.findall(r"CREATE TABLE (\w+)", SCHEMA))
BESIDE = ("-wal", "-shm")
"""Files that SQLite keeps beside the database; the first holds what was committed last."""
WAIT_SECONDS = 60.0
IN_PART = (
    "the store was damaged, and of this run only the first {:,} steps could be read: train it again"
)
SINCE = 1_767_225_600
"""2026 in seconds since 1970. A store that replaces another one numbers its runs from the milliseconds
since then: no store gets a thousand runs a second for long, so the numbers are new."""


def opened(
    folder: Path | None = None, again: bool = False, policy: Policy | None = None
) -> tuple[Store, str | None]:
    """The store of a folder, and a sentence about the file that was set aside, if there was one, with its new
    path.

    `again`: this process has used the folder's store before, which may be gone now. `policy`: as in `Store`.
    A file that a supervisor still uses is never moved, nor is one of another schema that any process has
    open: that may be another release beside this one. Raises StoreError where no store can be opened.
    """
    folder = folder or home()
    path = folder / FILE
    try:
        lock = FileLock(folder / "mend.lock", timeout=WAIT_SECONDS)  # two servers may start at once
        with lock:
            is_used = is_held(supervisor_lock(folder))
            if (why := damage(path)) is None and (why := _other_schema(path)) is not None:
                is_used = is_used or _is_open(path)
            aside = None if why is None else _set_aside(path, why, is_used)
            store = Store(folder, policy)
            if aside is not None or again:
                _number_on(store)
            if aside is None:
                return store, None
            return store, (
                f"The store of this server {why}. It lies now, as it was, at {aside}, and a fresh one was "
                f"begun with what ships with NormViz{_brought_over(aside, store)}"
            )
    except OSError:  # no lock can be made here, nor a file be moved
        return Store(folder, policy), None


def damage(path: Path, thorough: bool = False) -> str | None:
    """How the file was damaged, with SQLite's words; None if it was not, or nothing is there yet.

    `thorough` also compares every index with its table. A store of another schema is not damaged, nor is one
    that can't be opened at the moment.
    """
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        db = sqlite3.connect(path, timeout=10.0)
        try:
            checked = db.execute(f"PRAGMA {'integrity' if thorough else 'quick'}_check(1)")
            if (report := checked.fetchone()[0]) != "ok":
                return f"was damaged ({str(report).splitlines()[-1]})"
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
            missing = ", ".join(sorted(TABLES - tables))
            schema = schema_of(db)
            if missing and (schema == VERSION or (schema == 0 and tables)):
                return f"was damaged (it has no tables {missing})"
            return None
        finally:
            db.close()
    except sqlite3.Error as error:
        return f"was damaged ({error})" if is_damage(error) else None


def _other_schema(path: Path) -> str | None:
    """Which other schema the file has; None for this one's or none yet, or if it can't be opened at the
    moment."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(path, timeout=10.0)) as db:
        try:
            schema = schema_of(db)
        except sqlite3.Error:
            return None
    known = schema in (0, VERSION)
    return None if known else f"had another schema ({schema}, and this release reads {VERSION})"


def _is_open(path: Path) -> bool:
    """Whether a connection to a sound file is open, in this process or another one."""
    with closing(sqlite3.connect(path, timeout=0.0)) as db:
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            schema_of(db)  # takes the lock, against which every connection in WAL mode has one
        except sqlite3.Error as error:
            return is_busy(error)
    return False


def _set_aside(path: Path, why: str, is_used: bool) -> Path:
    """Move the file aside; returns its new path."""
    if is_used:
        raise StoreDamaged(
            f"the store {path} {why}, and another server or its supervisor still uses it: end that one, then "
            "start this one again"
        )
    aside = _free(path)
    for suffix in ("", *BESIDE):
        beside = Path(f"{path}{suffix}")
        if beside.exists():
            beside.rename(f"{aside}{suffix}")
    return aside


def _brought_over(aside: Path, store: Store) -> str:
    """Copy the runs that can be read in a damaged file of this schema, each with its steps up to the first
    that can't; returns words about them."""
    runs = parts = 0
    with suppress(sqlite3.Error), closing(_readable(aside)) as old:
        if schema_of(old) != VERSION:
            return ""
        for run in sorted(_numbers(old)):
            with suppress(sqlite3.Error, StoreError):
                if (is_whole := _copy(old, store, run)) is not None:
                    runs, parts = runs + 1, parts + (not is_whole)
    if not runs:
        return ""
    some = f" and with {runs:,} run{'s' * (runs > 1)} that could be read"
    return some + (f", {parts:,} of them in part" if parts else "")


def _readable(aside: Path) -> sqlite3.Connection:
    """A connection that changes nothing."""
    db = sqlite3.connect(f"{aside.absolute().as_uri()}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db


def _numbers(old: sqlite3.Connection) -> set[int]:
    """The numbers of a damaged file's runs, as far as its table and its index tell them."""
    numbers = set[int]()
    for scan in ("NOT INDEXED ORDER BY id", "NOT INDEXED ORDER BY id DESC", "WHERE status > ''"):
        with suppress(sqlite3.Error):
            for row in old.execute(f"SELECT id FROM runs {scan}"):
                numbers.add(row["id"])
    return numbers


def _copy(old: sqlite3.Connection, store: Store, run: int) -> bool | None:
    """Copy a run; whether all of it can be read, None for one that ships, which is not copied. Raises an
    error of either file."""
    row = old.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
    if row is None or str(row["origin"]).startswith("shipped"):
        return None
    values, steps, is_whole = dict(row), list[tuple[Any, ...]](), True
    try:
        for step in old.execute("SELECT * FROM steps WHERE run = ? ORDER BY step", (run,)):
            steps.append(tuple(step))
    except sqlite3.Error:
        is_whole = False
        values |= {"status": "failed", "message": IN_PART.format(len(steps))}
    with store.db.transaction() as db:
        _insert(db, "runs", [tuple(values.values())])
        _insert(db, "steps", steps)
    return is_whole


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        places = ", ".join("?" * len(rows[0]))
        db.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


def _number_on(store: Store) -> None:
    """Give runs of a fresh store numbers that no run of the one before had: open pages know runs by
    their numbers, and may request to delete one."""
    first = int((time.time() - SINCE) * 1000)
    with store.db.transaction() as db:
        db.execute(
            "INSERT INTO sqlite_sequence SELECT 'runs', ? "
            "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'runs')",
            (max(first, 0),),
        )


def _free(path: Path) -> Path:
    """An unused path that names the time."""
    day = f"{datetime.now():%Y-%m-%d-%H%M%S}"
    names = (f"{path.stem}-aside-{day}{f'-{n}' if n else ''}{path.suffix}" for n in count())
    return next(free for name in names if not (free := path.with_name(name)).exists())
