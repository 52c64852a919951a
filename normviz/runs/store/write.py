"""The statements that write a run, step by step from a worker or all at once."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence

import numpy as np

from ...config import RunConfig
from ...observed import Settings
from ...training.events import Diverged, Started, Step
from ..recording import Recording, probes_of


def keep(db: sqlite3.Connection, it: Recording, origin: str) -> int:
    """Store a run that has ended elsewhere; returns its number. Raises ValueError for one that has not
    started."""
    if it.started is None:
        raise ValueError(f"run {it.key} has not started, so there is nothing to keep of it")
    run = insert(db, it.config, "running", origin, it.probes)
    start(db, run, it.started, os.getpid(), "running", time.time() - it.seconds)
    append(db, run, it.steps)
    end(db, run, it.status, it.first_bad, it.message, it.wrote)
    return run


def insert(
    db: sqlite3.Connection,
    config: Settings,
    status: str,
    origin: str,
    probes: Sequence[str] = (),
) -> int:
    """Insert a row of `runs`; returns its number. Without `probes` it has those that such a run records."""
    run = db.execute(
        "INSERT INTO runs (key, config, status, origin, created, pid, probes) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (config.key, config.canonical(), status, origin, time.time(), os.getpid(),
         " ".join(probes or probes_of(config))),
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


def append(db: sqlite3.Connection, run: int, steps: Iterable[Step]) -> None:
    """Insert steps of a run."""
    rows = [
        (run, s.step, s.loss, s.lr, s.grad_norm,
         None if s.layers is None else np.ascontiguousarray(s.layers, "<f8").tobytes(), s.held_out,
         s.logit_rms)
        for s in steps
    ]  # fmt: skip
    db.executemany(
        "INSERT INTO steps (run, step, loss, lr, grad_norm, layers, held_out, logit_rms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def end(
    db: sqlite3.Connection,
    run: int,
    status: str,
    bad: Diverged | None,
    message: str | None,
    wrote: str = "",
) -> None:
    """Close a run that is still open; a closed one stays as it is."""
    step, layer, where = (bad.step, bad.layer, bad.where) if bad else (None, None, None)
    db.execute(
        "UPDATE runs SET status = ?, ended = ?, bad_step = ?, bad_layer = ?, bad_where = ?, "
        "message = ?, wrote = ? WHERE id = ? AND status IN ('queued', 'running', 'paused')",
        (status, time.time(), step, layer, where, message, wrote or None, run),
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
