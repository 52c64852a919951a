"""Opening a store that may be damaged: the file is moved aside, kept, and a fresh one is begun."""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime
from itertools import count
from pathlib import Path

from filelock import FileLock

from ...home import home
from . import Store
from .errors import StoreDamaged, is_damage
from .machine_lock import is_held
from .schema import FILE

TABLES = {"runs", "steps", "controls", "supervisor"}
BESIDE = ("-wal", "-shm")
"""Files that SQLite keeps beside the database; the first holds what was committed last."""
WAIT_SECONDS = 60.0
SINCE = 1_767_225_600
"""2026 in seconds since 1970. A store that replaces a damaged one numbers its runs from the milliseconds
since then: no store gets a thousand runs a second for long, so the numbers are new."""


def opened(folder: Path | None = None, again: bool = False) -> tuple[Store, str | None]:
    """The store of a folder, and a sentence about the damaged file, if there was one, with its new path.

    `again`: this process has used the folder's store before, which may be gone now.
    A file that a supervisor still uses is never moved. Raises StoreError where no store can be opened.
    """
    folder = folder or home()
    path = folder / FILE
    try:
        lock = FileLock(folder / "mend.lock", timeout=WAIT_SECONDS)  # two servers may start at once
        with lock:
            why = damage(path)
            said = None if why is None else _anew(path, why)
            store = Store(folder)
            if said is not None or again:
                _number_on(store)
            return store, said
    except OSError:  # no lock can be made here, nor a file be moved
        return Store(folder), None


def damage(path: Path, thorough: bool = False) -> str | None:
    """What is wrong with the file, in SQLite's words; None if nothing, or nothing is there yet.

    `thorough` also compares every index with its table. A store of another version is not damaged,
    nor is one that can't be opened at the moment.
    """
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        db = sqlite3.connect(path, timeout=10.0)
        try:
            found = db.execute(f"PRAGMA {'integrity' if thorough else 'quick'}_check(1)")
            if (said := found.fetchone()[0]) != "ok":
                return str(said).splitlines()[-1]
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
            missing = ", ".join(sorted(TABLES - tables))
            is_ours = db.execute("PRAGMA user_version").fetchone()[0] != 0
            if missing and (is_ours or tables):
                return f"it has no tables {missing}"
            return None
        finally:
            db.close()
    except sqlite3.Error as error:
        return str(error) if is_damage(error) else None


def _anew(path: Path, why: str) -> str:
    """Move the file aside; returns the sentence about it."""
    if is_held(path.parent / "supervisor.lock"):
        raise StoreDamaged(
            f"the store {path} is damaged ({why}), and another server or its supervisor still uses it: "
            "end that one, then start this one again"
        )
    aside = _free(path)
    for suffix in ("", *BESIDE):
        beside = Path(f"{path}{suffix}")
        if beside.exists():
            beside.rename(f"{aside}{suffix}")
    return (
        f"The store of this server was damaged ({why}). It lies now, as it was, at {aside}, and a fresh "
        "one was begun with what ships with NormViz"
    )


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
    """An unused path that names the damage and its time."""
    day = f"{datetime.now():%Y-%m-%d-%H%M%S}"
    names = (f"{path.stem}-damaged-{day}{f'-{n}' if n else ''}{path.suffix}" for n in count())
    return next(free for name in names if not (free := path.with_name(name)).exists())
