"""Rows of the store as runs and steps, and the statements that write both."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from ...config import RunConfig
from ...observed import Settings, read_settings
from ...training.events import Diverged, Started, Step, Writing
from .. import STATUSES, Recording, Run, Status, Steps
from ..engines import ENGINES
from ..recording import COLUMNS
from ..run import CELLS, DONE, OPEN, probes_of, reading_key
from .errors import StoreUnreadable

FOREIGN = (
    "it was queued by another release of NormViz, or on a text before this server was shared, and can't be "
    "trained here: choose the settings again and train"
)
LOST = "the training process ended without a word; everything committed up to there is kept"


def alive(pid: int | None) -> bool:
    """Whether a process of this machine runs; a zombie does not."""
    try:
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.AccessDenied:  # it is another user's
        return True
    except (psutil.NoSuchProcess, TypeError, ValueError):  # a damaged row may hold any value
        return False


def true_status(row: sqlite3.Row) -> Status:
    """The present status of a row of `runs`: a run without its process has failed."""
    gone = row["status"] in ("running", "paused") and not alive(row["pid"])
    return "failed" if gone else row["status"]


RANK = """
CASE
    WHEN status IN ('finished', 'diverged') THEN 2 * (origin LIKE '%sweep')
    WHEN status = 'queued' OR (status IN ('running', 'paused') AND alive(pid)) THEN 1
    WHEN status = 'stopped' THEN 3
    ELSE 4
END"""
"""The rank of a row of `runs` among those of its config, by its present status; the lowest is shown."""

CELL = f"origin IN {CELLS}"
"""Whether a row of `runs` is a cell of a map or a claim, which waits for all other runs."""

LEFT = f"{CELL} AND visitor IS NULL AND status IN ('queued', 'running') AND NOT alive(pid)"
"""Whether a row of `runs` is an open cell of a terminal that has ended without a word. A terminal's cells are
those of no visitor."""

IS_OPEN = f"status IN {OPEN}"
"""Whether a row of `runs` is not closed; its process may be gone all the same."""

RESULT = f"status IN {DONE}"
"""Whether a row of `runs` is a result."""


def read_run(row: sqlite3.Row) -> Run:
    """A row of `runs` as a run with its present status. Raises ValueError or TypeError for damage."""
    config, status = read_settings(json.loads(row["config"])), true_status(row)
    started = bad = None
    if row["device"] is not None:
        chance = math.nan if row["chance"] is None else row["chance"]  # SQLite has no NaN
        started = Started(
            config, row["device"], row["threads"], row["parameters"], chance, row["floor"], row["text"],
            row["engine"], row["why"],
        )  # fmt: skip
    if row["bad_step"] is not None:
        bad = Diverged(row["bad_step"], row["bad_layer"], row["bad_where"] or "")
    return Run(
        config, started, status, bad, row["message"] if status == row["status"] else LOST,
        row["started"], row["ended"], tuple(row["probes"].split()),
        row["id"], row["origin"], row["created"], row["visitor"], bool(row["linked"]),
        row["lab"] or "", read_reading(row["reading"]),
    )  # fmt: skip


def read_reading(text: str | None) -> dict[str, float]:
    """What a lab measured, by name; null is NaN. Raises ValueError or TypeError for damage."""
    values = json.loads(text) if text else {}
    return {str(name): math.nan if v is None else float(v) for name, v in values.items()}


MAYBE_WORDS = ("device", "text", "bad_where", "message", "why", "lab")
NUMBERS = ("started", "ended", "chance", "floor", "threads", "parameters", "bad_step", "bad_layer")
LATEST = 1e11
"""The upper bound of a valid time, in seconds since 1970."""


def readable(row: sqlite3.Row, own_text: bool) -> Run | None:
    """A row as a run; None for a row of a release with other settings or another engine, a damaged one, and
    without `own_text` a run on somebody's own text: strangers could read the text in its losses, and in what
    its model writes."""
    try:
        run = read_run(row)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not own_text and getattr(run.config, "text", ""):
        return None
    fits = (
        row["key"] == run.key
        and run.status in STATUSES
        and row["engine"] in (None, *ENGINES)
        and isinstance(run.origin, str)
        and all(isinstance(row[name], str | None) for name in MAYBE_WORDS)
        and all(isinstance(row[name], int | float | None) for name in NUMBERS)
        and all(_is_time(at) for at in (run.created, run.began or 0.0, run.ended or 0.0))
    )
    return run if fits else None


def _is_time(at: object) -> bool:
    return isinstance(at, int | float) and 0 <= at < LATEST


def read_losses(rows: list[sqlite3.Row], run: int) -> NDArray[np.float64]:
    """The first column of rows as losses [n]; NULL becomes NaN. Raises StoreUnreadable for a value that is
    not a number."""
    try:
        return np.array([row[0] for row in rows], dtype=np.float64)
    except (ValueError, TypeError):
        raise _unreadable(run) from None


def _unreadable(run: int) -> StoreUnreadable:
    return StoreUnreadable(
        f"the steps of run {run} can't be read, they are damaged: delete the run on the History page or "
        f"with `normviz runs --delete {run}`, and train its settings again"
    )


def read_steps(rows: list[sqlite3.Row], run: Run) -> Steps:
    """Rows of `steps` as arrays; NULL becomes NaN. Raises StoreUnreadable for damaged rows."""
    try:
        blobs = [row["layers"] for row in rows if row["layers"] is not None]
        shape = len(blobs), len(run.probes), run.config.rows + 1
        layers = np.frombuffer(b"".join(blobs), "<f8").reshape(shape)
        return Steps.of_rows([(*row[:-1], _writing(row["writing"])) for row in rows], layers)
    except (ValueError, TypeError):
        raise _unreadable(run.id) from None


def _writing(text: str | None) -> Writing | None:
    return None if text is None else Writing.loads(text)


def keep(db: sqlite3.Connection, recording: Recording, origin: str) -> int:
    """Store a run that has ended elsewhere; returns its number. Raises ValueError for one that has not
    started."""
    if recording.started is None:
        raise ValueError(f"run {recording.key} has not started, so there is nothing to keep of it")
    run = insert(db, recording.config, "running", origin, recording.probes)
    fill(db, run, recording)
    return run


def fill(db: sqlite3.Connection, run: int, recording: Recording) -> None:
    """Store what a run recorded that has ended elsewhere, in its row."""
    assert recording.started is not None
    now = time.time()
    start(db, run, recording.started, os.getpid(), "running", now - recording.seconds)
    append(db, run, recording.steps)
    end(db, run, recording.status, recording.first_bad, recording.message, now)


def insert(
    db: sqlite3.Connection,
    config: Settings,
    status: str,
    origin: str,
    probes: Sequence[str] = (),
    lab: str = "",
) -> int:
    """Insert a row of `runs`; returns its number. Without `probes` it has those that such a run records."""
    run = db.execute(
        "INSERT INTO runs (key, config, status, origin, created, pid, probes, lab) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (reading_key(lab, config) if lab else config.key, config.canonical(), status, origin, time.time(),
         os.getpid(), " ".join(probes or probes_of(config)), lab or None),
    ).lastrowid  # fmt: skip
    assert run is not None
    return run


def start(
    db: sqlite3.Connection, run: int, event: Started, pid: int, status: str, at: float
) -> None:
    """Store the `Started` event of a run, `at` seconds since 1970."""
    db.execute(
        "UPDATE runs SET status = ?, started = ?, pid = ?, device = ?, threads = ?, "
        "parameters = ?, chance = ?, floor = ?, text = ?, engine = ?, why = ? WHERE id = ?",
        (status, at, pid, event.device, event.threads,
         event.parameters, event.chance, event.floor, event.text, event.engine, event.why, run),
    )  # fmt: skip


def request(db: sqlite3.Connection, run: int, action: str, value: float | None = None) -> None:
    """Store a request about a run: pause, resume, step, stop, or lr with its value."""
    db.execute(
        "INSERT INTO controls (run, action, value, created) VALUES (?, ?, ?, ?)",
        (run, action, value, time.time()),
    )


def append(db: sqlite3.Connection, run: int, steps: Iterable[Step]) -> None:
    """Insert steps of a run."""
    rows = [(run, *_columns(s).values()) for s in steps]
    places = ", ".join("?" * (1 + len(COLUMNS)))
    db.executemany(f"INSERT INTO steps (run, {', '.join(COLUMNS)}) VALUES ({places})", rows)


def _columns(s: Step) -> dict[str, Any]:
    return vars(s) | {"layers": _blob(s.layers), "writing": s.writing and s.writing.dumps()}


def _blob(layers: NDArray[np.float64] | None) -> bytes | None:
    return None if layers is None else np.ascontiguousarray(layers, "<f8").tobytes()


def end(
    db: sqlite3.Connection,
    run: int,
    status: str,
    bad: Diverged | None,
    message: str | None,
    at: float | None = None,
) -> None:
    """Close a run that is still open, `at` seconds since 1970 or now; a closed one stays as it is."""
    step, layer, where = (bad.step, bad.layer, bad.where) if bad else (None, None, None)
    db.execute(
        "UPDATE runs SET status = ?, ended = ?, bad_step = ?, bad_layer = ?, bad_where = ?, "
        f"message = ? WHERE id = ? AND {IS_OPEN}",
        (status, at or time.time(), step, layer, where, message, run),
    )
    _drop_edits(db, run)


def _drop_edits(db: sqlite3.Connection, run: int) -> None:
    """Remove the changes of the learning rate that a run did not reach."""
    asked = db.execute("SELECT 1 FROM controls WHERE run = ? AND action = 'lr'", (run,)).fetchone()
    row = db.execute(
        "SELECT config, (SELECT COUNT(*) FROM steps WHERE run = id) AS n FROM runs WHERE id = ?",
        (run,),
    ).fetchone()
    if asked is None or row is None:
        return
    try:
        config = RunConfig(**json.loads(row["config"]))
    except (ValueError, TypeError, RecursionError):  # damaged
        return
    taken = config.replace(lr_edits=tuple(edit for edit in config.lr_edits if edit[0] < row["n"]))
    if taken != config:
        db.execute(
            "UPDATE runs SET key = ?, config = ? WHERE id = ?",
            (taken.key, taken.canonical(), run),
        )
