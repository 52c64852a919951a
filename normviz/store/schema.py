"""The database: one SQLite file in WAL mode, its tables, and its version."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .trouble import Connection, StoreError, told

VERSION = 1
FILE = "normviz.sqlite"

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,            -- engine version and hash of the config: names the result
    config TEXT NOT NULL,         -- canonical JSON
    status TEXT NOT NULL,         -- queued running paused finished diverged stopped failed
    origin TEXT NOT NULL,         -- here, sweep (a cell of one), shipped, shipped sweep
    created REAL NOT NULL, started REAL, ended REAL,  -- seconds since 1970
    pid INTEGER,                  -- of the process that trains it
    probes TEXT NOT NULL,         -- keys of the rows of steps.layers, in order
    device TEXT, threads INTEGER, parameters INTEGER,
    chance REAL, floor REAL, text TEXT,
    bad_step INTEGER, bad_layer INTEGER, bad_where TEXT,
    message TEXT                  -- why it failed
);
CREATE INDEX runs_by_key ON runs (key);
CREATE INDEX runs_by_status ON runs (status);
CREATE TABLE steps (
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    step INTEGER NOT NULL,
    loss REAL,                    -- NULL is NaN (SQLite has none); inf is stored as it is
    lr REAL NOT NULL,
    grad_norm REAL,               -- likewise
    layers BLOB,                  -- float64 [probes, L+1], little-endian, or NULL where not recorded
    PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE TABLE controls (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    action TEXT NOT NULL,         -- pause resume step stop lr
    value REAL,
    created REAL NOT NULL
);
CREATE INDEX controls_by_run ON controls (run, id);
CREATE TABLE supervisor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    pid INTEGER NOT NULL,
    ready INTEGER NOT NULL        -- 1 once a warm worker waits
);
"""


class Database:
    """One connection per thread to one file. Writes of several statements go in a `transaction`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        with self.transaction() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in SCHEMA.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION}")
            elif version != VERSION:
                raise StoreError(
                    f"the store {path} has version {version} and this release reads version "
                    f"{VERSION}: set NORMVIZ_HOME to another folder, or move the file away"
                )

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection, opened on first use."""
        db = getattr(self._local, "db", None)
        if db is None:
            try:
                db = sqlite3.connect(
                    self.path, timeout=10.0, isolation_level=None, factory=Connection
                )
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("PRAGMA foreign_keys = ON")
            except sqlite3.Error as error:
                raise told(error, self.path) from None
            db.row_factory = sqlite3.Row
            self._local.db = db
        return db

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; takes the write lock at once, so it can't fail half-way for another's."""
        db = self.connection
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")  # which fails too where the disk is full
        except BaseException:
            if db.in_transaction:  # SQLite may have gone back by itself
                db.execute("ROLLBACK")
            raise
