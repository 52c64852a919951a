"""Cells of maps and claims in the queue: asked for by a page and trained or measured whole by a worker, or
taken by a terminal that trains them itself; kept as results. How far a map or a claim is, is a question about
the rows of its keys."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...config import RunConfig
from ...model import texts
from ...policy import Kind, Open, demand
from .. import Recording, Run
from ..run import reading_key
from . import queue, retention
from .rows import CELL, LEFT, fill, insert, request

if TYPE_CHECKING:
    from . import Store


OPEN = f"status IN ('queued', 'running') AND NOT ({LEFT})"


@dataclass(frozen=True)
class OpenCells:
    """Open cells: their numbers by key.

    running   those that a process has now
    may_stop  whether this visitor may stop some of them; a terminal's are stopped there
    before    cells of others that come before the first of these
    seconds   estimated seconds until all of them have ended
    """

    runs: Mapping[str, int]
    running: frozenset[str]
    may_stop: bool
    before: int
    seconds: float


def ask(
    store: Store,
    configs: Sequence[RunConfig],
    kind: Kind,
    visitor: str,
    address: str = "",
    lab: str = "",
) -> None:
    """Queue the cells of a map or a claim for a visitor, in this order, readings of a `lab` where one is
    named; those that wait or train already are not queued again. `address` is a name of the visitor's network
    address.

    Raises Refused, with nothing queued, beyond the limits of the server or for a text that can't be trained
    on here.
    """
    demand(texts.obstacle(*configs))
    origin = "reading" if lab else "sweep"
    with store.db.transaction() as db:
        wanted = {reading_key(lab, config) if lab else config.key: config for config in configs}
        there = {row["key"] for row in _rows(db, wanted, OPEN)}
        new = [config for key, config in wanted.items() if key not in there]
        demand(store.policy.may_fill(kind, new, _minutes(store, visitor, address)))
        _clear(db, wanted)
        for config in new:
            queue.join(db, config, visitor, address=address, origin=origin, lab=lab)


def take(store: Store, configs: Sequence[RunConfig]) -> dict[str, int]:
    """Put the cells of a terminal's sweep into the queue for this process alone, so that pages see how far
    they are. Those that visitors wait for are taken over. Returns their numbers by key."""
    wanted = {config.key: config for config in configs}
    with store.db.transaction() as db:
        _clear(db, wanted, "OR (status = 'queued' AND turn IS NOT NULL)")
        return {key: insert(db, config, "queued", "sweep") for key, config in wanted.items()}


def leave(store: Store, runs: Collection[int]) -> None:
    """Delete the rows of cells that `take` put into the queue for this process; those that failed stay."""
    store.db.connection.execute(
        "DELETE FROM runs WHERE status IN ('queued', 'running') AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(runs)),),
    )


def _clear(db: sqlite3.Connection, keys: Collection[str], too: str = "") -> None:
    """Delete the cells among these keys that failed or for which `too` holds, and all that are LEFT."""
    db.execute(
        f"DELETE FROM runs WHERE {LEFT} OR (status = 'failed' {too}) AND {CELL} "
        "AND key IN (SELECT value FROM json_each(?))",
        (json.dumps(list(keys)),),
    )


def _minutes(store: Store, visitor: str, address: str) -> Open:
    """The estimated minutes of one core of the open cells that count when a visitor asks for more."""
    rows = store.db.connection.execute(
        f"SELECT visitor, address, config FROM runs WHERE visitor IS NOT NULL AND {OPEN} AND {CELL}"
    )
    costs = [(row, queue.cost(row["config"])[0] / 60) for row in rows.fetchall()]
    return Open(
        sum(cost for row, cost in costs if row["visitor"] == visitor),
        sum(cost for row, cost in costs if row["address"] == address) if address else None,
        sum(cost for _, cost in costs),
        retention.is_full(store),
    )


def opened(store: Store, keys: Sequence[str], visitor: str) -> OpenCells | None:
    """The open cells among these keys; None where none is open."""
    db = store.db.connection
    rows = _rows(db, keys, OPEN)
    if not rows:
        return None
    runs = {row["key"]: row["id"] for row in rows}
    order = queue.queued(db, cells=True)
    first = next((n for n, run in enumerate(order) if run in set(runs.values())), 0)
    return OpenCells(
        runs,
        frozenset(row["key"] for row in rows if row["status"] == "running"),
        any(_may_stop(store, row, visitor) for row in rows),
        first,
        sum(queue.cost(row["config"])[0] for row in rows) / store.policy.cells_at_once,
    )


def failures(store: Store, keys: Sequence[str]) -> list[str]:
    """Why cells among these keys failed, each sentence once."""
    rows = _rows(store.db.connection, keys, "status = 'failed'")
    return list(dict.fromkeys(row["message"] or "it ended without a word" for row in rows))


def stop(store: Store, keys: Sequence[str], visitor: str) -> None:
    """Stop the open cells among these keys that a visitor may stop; what has ended is kept."""
    with store.db.transaction() as db:
        for row in _rows(db, keys, OPEN):
            if not _may_stop(store, row, visitor):
                continue
            if row["status"] == "queued" and row["turn"] is not None:
                db.execute("DELETE FROM runs WHERE id = ?", (row["id"],))
            else:
                request(db, row["id"], "stop")


def _may_stop(store: Store, row: sqlite3.Row, visitor: str) -> bool:
    return row["visitor"] is not None and store.policy.may_steer(row["visitor"], visitor)


def reading(store: Store, lab: str, config: RunConfig) -> Run | None:
    """What a lab measured of a config here, or None."""
    rows = _rows(store.db.connection, [reading_key(lab, config)], "status = 'finished'")
    return store.run(rows[-1]["id"]) if rows else None


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


def _rows(db: sqlite3.Connection, keys: Collection[str], which: str) -> list[sqlite3.Row]:
    """The cells among these keys for which `which` holds, in the order in which they were queued."""
    return db.execute(
        f"SELECT * FROM runs WHERE {CELL} AND {which} AND key IN (SELECT value FROM json_each(?)) "
        "ORDER BY id",
        (json.dumps(list(keys)),),
    ).fetchall()
