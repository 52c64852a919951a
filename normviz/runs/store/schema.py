"""The database: one SQLite file in WAL mode, its tables, and the number of their schema."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import Connection, StoreDamaged, as_store_error
from .rows import alive

VERSION = 4
"""Number of the schema, kept in the file. A change of SCHEMA raises it."""
FILE = "normviz.sqlite"

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,            -- names the result: version and hash of the config, after a reading's lab
    config TEXT NOT NULL,         -- canonical JSON
    status TEXT NOT NULL,         -- queued running paused finished diverged stopped failed
    origin TEXT NOT NULL,         -- here, sweep, reading, shipped, shipped sweep, observed: see `Run`
    created REAL NOT NULL, started REAL, ended REAL,  -- seconds since 1970
    pid INTEGER,                  -- of the process that trains it
    probes TEXT NOT NULL,         -- keys of the rows of steps.layers, in order
    device TEXT, threads INTEGER, parameters INTEGER,
    chance REAL, floor REAL, text TEXT,
    bad_step INTEGER, bad_layer INTEGER, bad_where TEXT,
    message TEXT,                 -- why it failed
    visitor TEXT,                 -- hash of who asked for it, NULL where nobody on a page did
    turn INTEGER,                 -- hand-outs before it was queued; NULL once it is handed out
    watched INTEGER NOT NULL DEFAULT 0,  -- counts looks at it while it is open
    linked INTEGER NOT NULL DEFAULT 0,   -- 1 once its link was copied, or opened by somebody else
    beside INTEGER,               -- the run in whose turn it goes too, where it has none of its own
    reach INTEGER NOT NULL DEFAULT 0,  -- first step that its process does not take before it asks again
    address TEXT,                 -- keyed hash of the network address of who asked for it, where known
    engine TEXT,                  -- which engine computes its steps, NULL before it starts
    why TEXT,                     -- why it is not the tape, where the tape was wanted
    lab TEXT,                     -- which lab measures a reading
    reading TEXT                  -- what the lab measured, by name: JSON
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
    held_out REAL,                -- held-out loss after the update, NULL where not measured
    logit_rms REAL,               -- RMS of the logits, likewise
    writing TEXT,                 -- what the model writes, JSON (training/events.py); NULL where it does not
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
    ready INTEGER NOT NULL,       -- 1 once a warm worker waits
    slots INTEGER NOT NULL DEFAULT 1,   -- runs that it trains at once
    workers INTEGER NOT NULL DEFAULT 0  -- its processes
);
CREATE TABLE served (
    visitor TEXT PRIMARY KEY,     -- empty for runs of nobody on a page
    turn INTEGER NOT NULL         -- number of the last hand-out to them
) WITHOUT ROWID;
CREATE TABLE used (
    whose TEXT NOT NULL,          -- an address after an @, or a visitor without one
    at REAL NOT NULL,             -- when a run of theirs was handed out
    seconds REAL NOT NULL         -- of a core, by estimate
);
CREATE TABLE dropped (
    key TEXT PRIMARY KEY,         -- of a run whose link somebody may have, deleted to make room
    at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE pictures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    runs TEXT NOT NULL UNIQUE,    -- numbers of the duel's runs in the order of its lanes, as in "12,13"
    visitor TEXT,                 -- who saw the duel first; NULL for a picture that ships
    card BLOB,                    -- PNG for chats and feeds; NULL until it is drawn
    charts BLOB                   -- likewise, JSON packed by zlib: {"light": {name: SVG}, "dark": ...}
);
CREATE TRIGGER picture_goes AFTER DELETE ON runs
    BEGIN DELETE FROM pictures WHERE instr(',' || runs || ',', ',' || OLD.id || ','); END;
"""


class Database:
    """One connection per thread to one file. Several statements are written in a `transaction`.

    Raises StoreError for a file that can't be used, and StoreDamaged for one of another schema.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        with self.transaction() as db:
            if (schema := schema_of(db)) == 0:
                for statement in SCHEMA.split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION}")
        if schema not in (0, VERSION):
            self.connection.close()
            raise StoreDamaged(
                f"the store {path} has another schema ({schema}, and this release reads {VERSION}): start "
                "`normviz app`, which sets it aside and begins a fresh one, or set NORMVIZ_HOME to another "
                "folder"
            )
        self._file = _file_number(path)

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted or replaced: SQLite would keep writing to one that nothing reads."""
        return _file_number(self.path) != self._file

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection, opened on first use."""
        db = getattr(self._local, "db", None)
        if db is None:
            try:
                db = sqlite3.connect(
                    self.path,
                    timeout=10.0,
                    isolation_level=None,
                    check_same_thread=False,  # that of a thread that ended is closed by another
                    factory=Connection,
                )
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute("PRAGMA foreign_keys = ON")
            except sqlite3.Error as error:
                raise as_store_error(error, self.path) from None
            db.create_function("alive", 1, alive)
            db.row_factory = sqlite3.Row
            self._local.db = db
        return db

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, all or nothing. It takes the write lock at once, so that another writer can't make
        it fail half-way."""
        db = self.connection
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
            db.execute("COMMIT")  # which fails too where the disk is full
        except BaseException:
            if db.in_transaction:  # SQLite may have rolled back by itself
                db.execute("ROLLBACK")
            raise


def schema_of(db: sqlite3.Connection) -> int:
    """Number of the file's schema; 0 for a file that has none yet."""
    return db.execute("PRAGMA user_version").fetchone()[0]


def _file_number(path: Path) -> int | None:
    """The file's number on its disk, which no other file of the disk has; None without a file."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
