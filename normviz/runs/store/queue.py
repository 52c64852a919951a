"""The queue: visitors take turns, and each visitor's runs keep the order in which they were queued.

A turn is one run, or two runs that were queued together: the lanes of a duel train side by side. Each
turn has a number. The position of a visitor is the number of their last turn or, if none of their runs
waited since then, the last number when they came. So every other visitor gets at most one turn before a
visitor who waits.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...config import RunConfig
from ...cores import cores
from ...limits import estimated_seconds
from .run import alive
from .write import insert

FORGOTTEN = 1000
"""Turns after which a visitor's last one is deleted; a waiting visitor has had another by then."""
NEXT = -1
TOGETHER = 2
"""Runs in one turn: as many as a small server trains at once."""


@dataclass(frozen=True)
class Waiting:
    """A queued run; `turn` is None where a worker got it and has not begun yet, and NEXT where a worker
    got the other run of its turn, `beside`."""

    run: int
    visitor: str
    turn: int | None
    beside: int | None = None


@dataclass(frozen=True)
class QueuePlace:
    """A queued run's place, from 1, and about how many seconds until it begins."""

    number: int
    seconds: float


def in_turn(waiting: Sequence[Waiting], served: Mapping[str, int]) -> list[int]:
    """The numbers of the runs in the order in which workers get them, if no other run is queued."""
    own: dict[str, list[Waiting]] = {}
    for one in sorted(waiting, key=lambda one: one.run):
        if one.turn not in (None, NEXT):
            own.setdefault(one.visitor, []).append(one)
    ranked = []
    for visitor, runs in own.items():
        stands = max(served.get(visitor, 0), runs[0].turn or 0)
        there, nth = {one.run for one in runs}, 0
        for one in runs:
            nth += one.beside not in there
            ranked.append(((nth, stands, runs[0].run), one.run))
    handed = sorted(one.run for one in waiting if one.turn is None)
    following = sorted(one.run for one in waiting if one.turn == NEXT)
    return handed + following + [run for _, run in sorted(ranked)]


def join_all(
    db: sqlite3.Connection, configs: Sequence[RunConfig], visitor: str | None, paused: bool = False
) -> list[int]:
    """Queue the configs of one request in a transaction; returns the numbers of their runs."""
    runs: list[int] = []
    for nth, config in enumerate(configs):
        beside = runs[nth - nth % TOGETHER] if nth % TOGETHER else None
        runs.append(join(db, config, visitor, paused, beside))
    return runs


def join(
    db: sqlite3.Connection,
    config: RunConfig,
    visitor: str | None,
    paused: bool = False,
    beside: int | None = None,
) -> int:
    """Queue a config for a visitor, in a transaction; returns the run's number. A `paused` run waits
    before its first step, and `beside` is the first run of the same turn."""
    run = insert(db, config, "queued", "here")
    db.execute(
        "UPDATE runs SET visitor = ?, beside = ?, "
        "turn = (SELECT COALESCE(MAX(turn), 0) FROM served) WHERE id = ?",
        (visitor, beside, run),
    )
    if paused:
        db.execute(
            "INSERT INTO controls (run, action, created) VALUES (?, 'pause', ?)",
            (run, time.time()),
        )
    return run


def handed(db: sqlite3.Connection, run: int) -> None:
    """Store that a worker gets the run, in a transaction: it counts a turn of its visitor, and the other
    run of the turn is next."""
    row = db.execute(
        "SELECT visitor, turn FROM runs WHERE id = ? AND turn IS NOT NULL", (run,)
    ).fetchone()
    if row is None:
        return
    db.execute("UPDATE runs SET turn = NULL WHERE id = ?", (run,))
    if row["turn"] == NEXT:
        return
    db.execute(
        "UPDATE runs SET turn = ? WHERE beside = ? AND status = 'queued' AND turn IS NOT NULL",
        (NEXT, run),
    )
    turn = db.execute("SELECT COALESCE(MAX(turn), 0) + 1 FROM served").fetchone()[0]
    db.execute("INSERT OR REPLACE INTO served VALUES (?, ?)", (row["visitor"] or "", turn))
    db.execute("DELETE FROM served WHERE turn < ?", (turn - FORGOTTEN,))


def queued(db: sqlite3.Connection) -> list[int]:
    """The numbers of waiting runs, in the order in which workers get them."""
    rows = db.execute(
        "SELECT id, visitor, turn, beside FROM runs WHERE status = 'queued'"
    ).fetchall()
    if len(rows) < 2:
        return [row["id"] for row in rows]
    served = dict(db.execute("SELECT visitor, turn FROM served").fetchall())
    return in_turn(
        [Waiting(r["id"], r["visitor"] or "", r["turn"], r["beside"]) for r in rows], served
    )


def place(db: sqlite3.Connection, run: int) -> QueuePlace | None:
    """A run's place and the estimated seconds until it begins; None for a run that does not wait."""
    order = queued(db)
    if run not in order:
        return None
    before = order[: order.index(run)]
    rows = db.execute(
        f"SELECT id, config FROM runs WHERE id IN ({', '.join('?' * len(before))})", before
    ).fetchall()
    seconds = {row["id"]: _cost(row["config"])[0] for row in rows}
    busy = [_left(row) for row in db.execute(RUNNING) if alive(row["pid"])]
    slots = db.execute("SELECT slots FROM supervisor").fetchone()
    n = slots["slots"] if slots else cores()
    return QueuePlace(len(before) + 1, until_free(busy, (seconds.get(r, 0.0) for r in before), n))


RUNNING = (
    "SELECT id, pid, config, (SELECT MAX(step) FROM steps WHERE run = id) AS step FROM runs "
    "WHERE status = 'running' AND origin = 'here'"
)


def until_free(busy: Iterable[float], before: Iterable[float], slots: int) -> float:
    """Seconds until a slot is free for one more run, where each run takes the slot that is free first.

    `busy` has the seconds left of running runs, `before` those of the runs before it in the queue.
    """
    ends = sorted(busy)
    ends = [0.0] * (slots - len(ends)) + ends[max(0, len(ends) - slots) :]
    for seconds in before:
        heapq.heapreplace(ends, ends[0] + seconds)
    return ends[0]


def _left(row: sqlite3.Row) -> float:
    """Estimated seconds that are left of a running run."""
    seconds, steps = _cost(row["config"])
    done = 0 if row["step"] is None else row["step"] + 1
    return seconds * max(0.0, 1 - done / (steps + 1))


@lru_cache(maxsize=4096)
def _cost(config: str) -> tuple[float, int]:
    """Estimated seconds and the steps of a stored config."""
    try:
        known = RunConfig(**json.loads(config))
    except (ValueError, TypeError, RecursionError):  # written by a release with other settings
        return 0.0, 0
    return estimated_seconds(known), known.steps
