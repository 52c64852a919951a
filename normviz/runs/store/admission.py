"""Requests of visitors to the queue: checked and queued together, or refused with a sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ... import hosted
from ...config import RunConfig
from ...hosted import Refused
from ...model import texts
from ...training import text_privacy
from .. import OPEN
from . import queue, retention
from .run import Run, true_status

if TYPE_CHECKING:
    from . import Store

FULL = (
    "the store of this shared server is full of runs that wait, train or ship: nothing new can be "
    "trained until some of them have ended, or its owner gives it more room (NORMVIZ_STORE_MB)"
)
OTHERS = "Somebody else asked for this: only they can pause, step or stop it, or change its rate"


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

    In hosted mode a config that waits or trains already is not queued again: its run is returned. Raises
    Refused, with nothing queued, beyond the limits of the server or where the visitor lacks a text.
    """
    hosted.check(configs)
    texts.check(configs, visitor)
    text_privacy.check(configs)
    with store.db.transaction() as db:
        if hosted.limits() is None:
            return queue.join_all(db, configs, visitor, paused, address)
        keys = {config.key: config for config in configs}
        runs = {} if paused else {key: _joined(db, key, instead) for key in keys}
        new = [config for key, config in keys.items() if runs.get(key) is None]
        if new:
            _check(db, len(new), visitor, instead, address)
        asked = queue.join_all(db, new, visitor, paused, address)
        runs |= {config.key: run for config, run in zip(new, asked, strict=True)}
    return [run for config in configs if (run := runs[config.key]) is not None]


def may_steer(run: Run, visitor: str) -> bool:
    """Whether this visitor may pause, step or stop a run or change its rate: in hosted mode only the
    visitor that queued it."""
    return hosted.limits() is None or run.visitor == visitor


def _check(
    db: sqlite3.Connection, new: int, visitor: str, instead: Collection[int], address: str
) -> None:
    """Raises Refused where `new` more runs are too many."""
    here, limit = hosted.limits(), hosted.store_bytes()
    assert here is not None
    mine = _open_runs(db, visitor, instead)
    if mine + new > here.open_runs:
        raise Refused(
            f"you have {mine} open runs and ask for {new} more, and this shared server gives each "
            f"visitor up to {here.open_runs}: stop some, or wait until they have ended"
        )
    if (waits := _waiting(db, instead)) + new > here.queue:
        raise Refused(
            f"{waits} runs wait already and {new} more were asked for, and the queue of this shared "
            f"server holds {here.queue}: look at stored runs meanwhile, and try again in a minute"
        )
    if address:
        theirs = _waiting(db, instead, address)
        most = queue.most_waiting(here.queue, waits + new)
        if theirs + new > (most if theirs else max(most, here.lanes)):
            raise Refused(
                f"{theirs} runs from your network address wait already and {new} more were asked for, and "
                f"this shared server now lets an address have up to {most}, so that others find free "
                "places: try again in a minute"
            )
    if limit is not None and retention.is_full(db, limit):
        raise Refused(FULL)


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
        "SELECT id FROM runs WHERE visitor = ? AND status IN ('queued', 'running', 'paused') "
        "AND NOT EXISTS (SELECT 1 FROM controls WHERE run = runs.id AND action = 'stop')",
        (visitor,),
    )
    return sum(row["id"] not in but for row in rows)


def _waiting(db: sqlite3.Connection, but: Collection[int], address: str = "") -> int:
    """How many runs wait, or those from one address; the runs of `but` are left out."""
    rows = db.execute(
        "SELECT id FROM runs WHERE status = 'queued' AND ? IN ('', address)", (address,)
    )
    return sum(row["id"] not in but for row in rows)
