"""Counts of a store's runs and of its activity, for the operator of a server."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from . import retention
from .errors import StoreError
from .rows import IS_OPEN, true_status
from .schema import Database

FAILURES = 3


@dataclass(frozen=True)
class Failure:
    """A run that failed: when (seconds since 1970) and why."""

    run: int
    at: float
    message: str


@dataclass(frozen=True)
class StoreCounts:
    """Counts of a store.

    queued, running, paused  open runs
    visitors  with open runs
    runs      all runs; shipped and linked ones are among them
    bytes     of the file that the runs take
    oldest    when the oldest run that did not ship was queued, in seconds since 1970
    failures  the last FAILURES ones, newest first
    ready     whether the supervisor had a warm worker at its last report; workers its processes
    """

    queued: int
    running: int
    paused: int
    visitors: int
    runs: int
    shipped: int
    linked: int
    bytes: int
    oldest: float | None
    failures: tuple[Failure, ...]
    ready: bool
    workers: int


def count(database: Database) -> StoreCounts:
    """The counts of a store now: a run without its process has failed. Raises StoreError."""
    try:
        return _count(database.connection)
    except sqlite3.Error as error:
        raise StoreError(f"the store {database.path} can't be read ({error})") from None


def _count(db: sqlite3.Connection) -> StoreCounts:
    rows = db.execute(f"SELECT * FROM runs WHERE {IS_OPEN}").fetchall()
    statuses = [true_status(row) for row in rows]
    runs, shipped, linked, oldest = db.execute(
        "SELECT COUNT(*), COALESCE(SUM(origin LIKE 'shipped%'), 0), COALESCE(SUM(linked), 0), "
        "MIN(CASE WHEN origin NOT LIKE 'shipped%' THEN created END) FROM runs"
    ).fetchone()
    failed = db.execute(
        "SELECT id, ended, message FROM runs WHERE status = 'failed' ORDER BY ended DESC LIMIT ?",
        (FAILURES,),
    )
    supervisor = db.execute("SELECT ready, workers FROM supervisor").fetchone() or (0, 0)
    return StoreCounts(
        *(statuses.count(status) for status in ("queued", "running", "paused")),
        visitors=len({row["visitor"] for row in rows if row["visitor"]}),
        runs=runs, shipped=shipped, linked=linked, bytes=retention.used(db), oldest=oldest,
        failures=tuple(Failure(r["id"], r["ended"] or 0.0, r["message"] or "") for r in failed),
        ready=bool(supervisor[0]), workers=supervisor[1],
    )  # fmt: skip
