"""Cells of maps and claims in the queue: asked for by a page, trained or measured whole by a worker, and kept
as results. How far a map or a claim is, is a question about the rows of its keys."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import hosted
from ...config import RunConfig, estimated_seconds
from ...hosted import Refused
from ...model import texts
from .. import Recording, Run
from ..run import reading_key
from . import queue, retention
from .rows import CELL, fill, known

if TYPE_CHECKING:
    from . import Store


@dataclass(frozen=True)
class Open:
    """Open cells: their numbers by key.

    running  those that a process has now
    mine     those that this visitor asked for
    before   cells of others that come before the first of these
    seconds  estimated seconds of one core for all of them
    """

    runs: Mapping[str, int]
    running: frozenset[str]
    mine: frozenset[str]
    before: int
    seconds: float


def ask(
    store: Store,
    configs: Sequence[RunConfig],
    visitor: str | None,
    address: str = "",
    lab: str = "",
) -> None:
    """Queue cells for a visitor, in this order, readings of a `lab` where one is named; those that wait or
    train already are not queued again. `address` is a name of the visitor's network address.

    Raises Refused, with nothing queued, beyond the limits of the server or for a text that can't be trained
    on here.
    """
    hosted.check(configs)
    texts.check(configs)
    origin = "reading" if lab else "sweep"
    with store.db.transaction() as db:
        wanted = {reading_key(lab, it) if lab else it.key: it for it in configs}
        opened = {row["key"] for row in _rows(db, wanted, "status IN ('queued', 'running')")}
        new = [config for key, config in wanted.items() if key not in opened]
        _check(db, sum(map(estimated_seconds, new)), visitor, address)
        db.execute(
            f"DELETE FROM runs WHERE status = 'failed' AND {CELL} AND key IN "
            "(SELECT value FROM json_each(?))",
            (json.dumps(list(wanted)),),
        )
        for config in new:
            queue.join(db, config, visitor, address=address, origin=origin, lab=lab)


def _check(db: sqlite3.Connection, new: float, visitor: str | None, address: str) -> None:
    """Raises Refused where cells of `new` estimated seconds more are too many."""
    here, limit = hosted.limits(), hosted.store_bytes()
    if here is None:
        return
    rows = db.execute(
        f"SELECT visitor, address, config FROM runs WHERE status IN ('queued', 'running') AND {CELL}"
    ).fetchall()
    costs = [(row, queue.cost(row["config"])[0] / 60) for row in rows]
    mine = sum(cost for row, cost in costs if visitor and row["visitor"] == visitor)
    near = sum(cost for row, cost in costs if address and row["address"] == address)
    for whose, open_minutes, most in (
        ("you asked for", mine, here.fill_minutes),
        ("your network address asked for", near, here.address_minutes),
        ("all visitors asked for", sum(cost for _, cost in costs), here.all_minutes),
    ):
        if open_minutes and open_minutes + new / 60 > most:
            raise Refused(
                f"the maps and claims that {whose} and that have not ended take about {open_minutes:.1f} min "
                f"of one core, and this shared server takes up to {most:g} min of them at once: try again "
                "when one has ended"
            )
    if limit is not None and retention.is_full(db, limit):
        raise Refused(queue.STORE_FULL)


def opened(store: Store, keys: Sequence[str], visitor: str | None) -> Open | None:
    """The open cells among these keys; None where none is open."""
    db = store.db.connection
    rows = _rows(db, keys, "status IN ('queued', 'running')")
    if not rows:
        return None
    runs = {row["key"]: row["id"] for row in rows}
    order = queue.queued(db, cells=True)
    first = next((n for n, run in enumerate(order) if run in set(runs.values())), 0)
    return Open(
        runs,
        frozenset(row["key"] for row in rows if row["status"] == "running"),
        frozenset(row["key"] for row in rows if row["visitor"] == visitor),
        first,
        sum(queue.cost(row["config"])[0] for row in rows),
    )


def failures(store: Store, keys: Sequence[str]) -> list[str]:
    """Why cells among these keys failed, each sentence once."""
    rows = _rows(store.db.connection, keys, "status = 'failed'")
    return list(dict.fromkeys(row["message"] or "it ended without a word" for row in rows))


def stop(store: Store, keys: Sequence[str], visitor: str | None = None) -> None:
    """Stop the open cells among these keys, or those that a `visitor` asked for; what has ended is kept."""
    with store.db.transaction() as db:
        for row in _rows(db, keys, "status IN ('queued', 'running')"):
            if visitor is not None and row["visitor"] != visitor:
                continue
            if row["status"] == "queued" and row["turn"] is not None:
                db.execute("DELETE FROM runs WHERE id = ?", (row["id"],))
            else:
                db.execute(
                    "INSERT INTO controls (run, action, created) VALUES (?, 'stop', ?)",
                    (row["id"], time.time()),
                )


def reading(store: Store, lab: str, config: RunConfig) -> Run | None:
    """What a lab measured of a config here, or None."""
    rows = _rows(store.db.connection, [reading_key(lab, config)], "status = 'finished'")
    return known(rows[-1]) if rows else None


def began(store: Store, run: int) -> None:
    """Store that this process trains or measures a cell."""
    store.db.connection.execute(
        "UPDATE runs SET status = 'running', pid = ? WHERE id = ? AND status = 'queued'",
        (os.getpid(), run),
    )


def keep(store: Store, run: int, measured: Recording) -> None:
    """Store what a cell recorded, as one write; nothing where it was stopped meanwhile."""
    with store.db.transaction() as db:
        if db.execute("SELECT 1 FROM runs WHERE id = ? AND status = 'running'", (run,)).fetchone():
            fill(db, run, measured)


def keep_reading(store: Store, run: int, values: Mapping[str, float], seconds: float) -> None:
    """Store what a lab measured in so many CPU seconds."""
    finite = {name: None if math.isnan(value) else value for name, value in values.items()}
    now = time.time()
    store.db.connection.execute(
        "UPDATE runs SET status = 'finished', started = ?, ended = ?, reading = ? "
        "WHERE id = ? AND status = 'running'",
        (now - seconds, now, json.dumps(finite), run),
    )


def _rows(
    db: sqlite3.Connection, keys: Sequence[str] | Mapping[str, object], which: str
) -> list[sqlite3.Row]:
    """The cells among these keys for which `which` holds, in the order in which they were queued."""
    return db.execute(
        f"SELECT * FROM runs WHERE {CELL} AND {which} AND key IN (SELECT value FROM json_each(?)) "
        "ORDER BY id",
        (json.dumps(list(keys)),),
    ).fetchall()
