"""The queue: network addresses share the cores, the visitors of an address take turns, and each visitor's
runs keep the order in which they were queued. A visitor's request is checked first, and queued whole or
refused with a sentence.

A turn is one run, or two runs that were queued together: the lanes of a duel train side by side. Each
turn has a number. The position of a visitor is the number of their last turn or, if none of their runs
waited since then, the last number when they came. So every other visitor gets at most one turn before a
visitor who waits.

A cookie is free, so addresses come first. The next turn is that of the address that would have had the
fewest seconds of a core after it: those of its runs that were handed out within LATELY, by estimate, and
those of this turn. Of equals the positions of the visitors decide. A visitor whose address is unknown counts
as an address.

Cells of maps and claims are rows of the same queue. They have processes of their own, at low priority, and
their order is by the same rule.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...config import RunConfig, estimated_seconds
from ...cores import cores
from ...model import texts
from ...policy import Open, demand
from .. import OPEN
from . import retention
from .rows import CELL, IS_OPEN, alive, insert, request, true_status

if TYPE_CHECKING:
    from . import Store

OTHERS = "Somebody else asked for this: only they can pause, step or stop it, or change its rate"
FORGOTTEN = 1000
"""Turns after which a visitor's last one is deleted; a waiting visitor has had another by then."""
LATELY = 600.0
"""Seconds for which a run that was handed out counts against its address."""
NEXT = -1
TOGETHER = 2
"""Runs in one turn: as many as a small server trains at once."""


@dataclass(frozen=True)
class Waiting:
    """A queued run, as `queued` selects it, with its estimated `seconds`; `turn` is None where a worker got
    it and has not begun yet, and NEXT where a worker got the other run of its turn, `beside`."""

    run: int
    visitor: str
    turn: int | None
    beside: int | None = None
    address: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class QueuePlace:
    """A queued run's place, from 1, and about how many seconds until it begins."""

    number: int
    seconds: float


clock = time.time
"""Seconds since 1970; a simulation has a clock of its own."""


def in_turn(
    waiting: Sequence[Waiting],
    served: Mapping[str, int],
    used: Mapping[str, float] = MappingProxyType({}),
) -> list[int]:
    """The numbers of the runs in the order in which workers get them, if no other run is queued; `used`
    has the seconds that each address used lately."""
    own: dict[str, list[Waiting]] = {}
    for queued_run in sorted(waiting, key=lambda queued_run: queued_run.run):
        if queued_run.turn not in (None, NEXT):
            own.setdefault(queued_run.visitor, []).append(queued_run)
    ranked = []
    for visitor, runs in own.items():
        position = max(served.get(visitor, 0), runs[0].turn or 0)
        there, nth = {queued_run.run for queued_run in runs}, 0
        for queued_run in runs:
            nth += queued_run.beside not in there
            ranked.append(((nth, position, runs[0].run), queued_run))
    handed = sorted(queued_run.run for queued_run in waiting if queued_run.turn is None)
    following = sorted(queued_run.run for queued_run in waiting if queued_run.turn == NEXT)
    ranked.sort(key=lambda pair: (pair[0], pair[1].run))
    return handed + following + _by_seconds(ranked, used)


def _by_seconds(
    ranked: Sequence[tuple[tuple[int, int, int], Waiting]], used: Mapping[str, float]
) -> list[int]:
    """The runs of ranked turns in the order of the seconds that their address would have used after them."""
    turns: dict[tuple[int, int, int], list[Waiting]] = {}
    for rank, queued_run in ranked:
        turns.setdefault(rank, []).append(queued_run)
    after = dict(used)
    totals = []
    for rank, runs in turns.items():
        whose = _whose(runs[0].visitor, runs[0].address)
        after[whose] = after.get(whose, 0.0) + sum(queued_run.seconds for queued_run in runs)
        totals.append((after[whose], rank, [queued_run.run for queued_run in runs]))
    return [run for _, _, runs in sorted(totals) for run in runs]


def _whose(visitor: str, address: str) -> str:
    """What counts as an address: the visitor where the address is unknown."""
    return f"@{address}" if address else visitor


def join_all(
    db: sqlite3.Connection,
    configs: Sequence[RunConfig],
    visitor: str | None,
    paused: bool = False,
    address: str = "",
) -> list[int]:
    """Queue the configs of one request in a transaction; returns the numbers of their runs."""
    runs: list[int] = []
    for nth, config in enumerate(configs):
        beside = runs[nth - nth % TOGETHER] if nth % TOGETHER else None
        runs.append(join(db, config, visitor, paused, beside, address))
    return runs


def join(
    db: sqlite3.Connection,
    config: RunConfig,
    visitor: str | None,
    paused: bool = False,
    beside: int | None = None,
    address: str = "",
    origin: str = "here",
    lab: str = "",
) -> int:
    """Queue a config for a visitor, in a transaction; returns the run's number. A `paused` run waits
    before its first step, `beside` is the first run of the same turn, `address` is a name of the visitor's
    network address, and `lab` measures a reading."""
    run = insert(db, config, "queued", origin, lab=lab)
    db.execute(
        "UPDATE runs SET visitor = ?, beside = ?, address = ?, "
        "turn = (SELECT COALESCE(MAX(turn), 0) FROM served) WHERE id = ?",
        (visitor, beside, address or None, run),
    )
    if paused:
        request(db, run, "pause")
    return run


def handed(db: sqlite3.Connection, run: int) -> None:
    """Store that a worker gets the run, in a transaction: it counts a turn of its visitor, and the other
    run of the turn is next."""
    row = db.execute(
        "SELECT visitor, turn, address, config FROM runs WHERE id = ? AND turn IS NOT NULL", (run,)
    ).fetchone()
    if row is None:
        return
    whose, now = _whose(row["visitor"] or "", row["address"] or ""), clock()
    db.execute("INSERT INTO used VALUES (?, ?, ?)", (whose, now, cost(row["config"])[0]))
    db.execute("DELETE FROM used WHERE at NOT BETWEEN ? AND ?", (now - LATELY, now))
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


def queued(db: sqlite3.Connection, cells: bool = False) -> list[int]:
    """The numbers of waiting runs, or of visitors' waiting `cells`, in the order in which workers get
    them."""
    rows = db.execute(
        "SELECT id, visitor, turn, beside, address, config FROM runs "
        f"WHERE status = 'queued' AND {CELL} = ? AND (visitor IS NOT NULL OR NOT {CELL})",
        (cells,),
    )
    waiting = [
        Waiting(run, visitor or "", turn, beside, address or "", cost(config)[0])
        for run, visitor, turn, beside, address, config in rows
    ]
    if len(waiting) < 2:
        return [queued_run.run for queued_run in waiting]
    served = dict(db.execute("SELECT visitor, turn FROM served").fetchall())
    now = clock()
    used = db.execute(
        "SELECT whose, SUM(seconds) FROM used WHERE at BETWEEN ? AND ? GROUP BY whose",
        (now - LATELY, now),
    ).fetchall()
    return in_turn(waiting, served, dict(used))


def place(db: sqlite3.Connection, run: int) -> QueuePlace | None:
    """A run's place and the estimated seconds until it begins; None for a run that does not wait."""
    order = queued(db)
    if run not in order:
        return None
    before = order[: order.index(run)]
    rows = db.execute(
        f"SELECT id, config FROM runs WHERE id IN ({', '.join('?' * len(before))})", before
    ).fetchall()
    seconds = {row["id"]: cost(row["config"])[0] for row in rows}
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
    seconds, steps = cost(row["config"])
    done = 0 if row["step"] is None else row["step"] + 1
    return seconds * max(0.0, 1 - done / (steps + 1))


@lru_cache(maxsize=4096)
def cost(config: str) -> tuple[float, int]:
    """Estimated seconds and the steps of a stored config."""
    try:
        settings = RunConfig(**json.loads(config))
    except (ValueError, TypeError, RecursionError):  # of another release
        return 0.0, 0
    return estimated_seconds(settings), settings.steps


def refusal(store: Store, configs: Sequence[RunConfig]) -> str | None:
    """The sentence that refuses runs of these settings here, whoever asks; None where they may be queued."""
    return store.policy.may(configs) or texts.obstacle(*configs)


def is_free(store: Store, but: Collection[int]) -> bool:
    """Whether runs may be queued that nobody clicked for: on a shared server only while no other run than
    those of `but` waits."""
    return not store.policy.is_shared or set(store.queued()) <= set(but)


def enqueue(
    store: Store,
    configs: Sequence[RunConfig],
    visitor: str,
    paused: bool = False,
    instead: Collection[int] = (),
    address: str = "",
) -> list[int]:
    """Queue configs for a visitor and return a run for each; the runs of `instead` are being given up
    and do not count. `address` is a name of the visitor's network address, empty where it is unknown.

    On a shared server a config that waits or trains already is not queued again: its run is returned. Raises
    Refused, with nothing queued, beyond the limits of the server or for a text that can't be trained on here.
    """
    policy = store.policy
    demand(refusal(store, configs))
    with store.db.transaction() as db:
        if not policy.is_shared:
            return join_all(db, configs, visitor, paused, address)
        keys = {config.key: config for config in configs}
        runs = {} if paused else {key: _joined(db, key, instead) for key in keys}
        new = [config for key, config in keys.items() if runs.get(key) is None]
        if new:
            demand(policy.may(new, _opened(store, visitor, instead, address)))
        asked = join_all(db, new, visitor, paused, address)
        runs |= {config.key: run for config, run in zip(new, asked, strict=True)}
    return [run for config in configs if (run := runs[config.key]) is not None]


def _opened(store: Store, visitor: str, but: Collection[int], address: str) -> Open:
    """The open runs that count when a visitor asks for more."""
    db = store.db.connection
    return Open(
        _open_runs(db, visitor, but),
        _waiting(db, but, address) if address else None,
        _waiting(db, but),
        retention.is_full(store),
    )


def _joined(db: sqlite3.Connection, key: str, but: Collection[int]) -> int | None:
    """An open run of a config without a request to pause or stop, and not in `but`; None without one."""
    rows = db.execute(
        "SELECT * FROM runs WHERE key = ? AND status IN ('queued', 'running') AND origin = 'here' "
        "AND NOT EXISTS (SELECT 1 FROM controls WHERE run = runs.id "
        "AND action IN ('stop', 'pause')) ORDER BY id",
        (key,),
    )
    there = (row["id"] for row in rows if true_status(row) in OPEN)
    return next((run for run in there if run not in but), None)


def _open_runs(db: sqlite3.Connection, visitor: str, but: Collection[int]) -> int:
    """How many runs a visitor has open, those of `but` and those that are being stopped left out."""
    rows = db.execute(
        f"SELECT id FROM runs WHERE visitor = ? AND {IS_OPEN} AND NOT {CELL} "
        "AND NOT EXISTS (SELECT 1 FROM controls WHERE run = runs.id AND action = 'stop')",
        (visitor,),
    )
    return sum(row["id"] not in but for row in rows)


def _waiting(db: sqlite3.Connection, but: Collection[int], address: str = "") -> int:
    """How many runs wait, or those from one address; the runs of `but` are left out."""
    rows = db.execute(
        f"SELECT id FROM runs WHERE status = 'queued' AND NOT {CELL} AND ? IN ('', address)",
        (address,),
    )
    return sum(row["id"] not in but for row in rows)
