"""The store: runs, their steps, and the requests of pages about them.

A page sends two kinds of requests to the back end, both through the store: "queue this config" and
"pause, resume, step, stop this run or set its learning rate". It reads everything else from the store; a
live chart shows the newest steps there. A run has many readers and one writer, so the store needs no
lock of its own besides SQLite's.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...config import RunConfig
from ...home import home
from ...observed import Observed
from ...policy import Policy, Refused, from_environment
from ...training.events import Diverged, Started, Step
from ...training.schedule import with_lr
from .. import Recording, Run, Steps
from ..recording import COLUMNS
from ..run import stays
from . import queue
from .errors import StoreDamaged, StoreError, StoreFull, StoreUnreadable
from .query import MODEL, Clause, Condition, Query, QueryResult, listed
from .rows import (
    CELL,
    IS_OPEN,
    LEFT,
    LOST,
    RANK,
    RESULT,
    alive,
    read_losses,
    read_steps,
    readable,
    request,
    true_status,
)
from .rows import append as _append
from .rows import end as _end
from .rows import insert as _insert
from .rows import keep as _keep
from .rows import start as _start
from .schema import FILE, Database

__all__ = [
    "MODEL",
    "Action",
    "Clause",
    "Condition",
    "Query",
    "QueryResult",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreUnreadable",
]  # fmt: skip

LOG = logging.getLogger(__name__)
Action = Literal["pause", "resume", "step", "stop"]
Origin = Literal["here", "shipped", "sweep", "shipped sweep", "observed"]


class Store:
    """The store in a folder, by default the user's data folder. Safe to share among threads.

    `policy` says what may be queued and shown: by default what the environment chooses. Its methods raise
    StoreError where the file can't be used.
    """

    def __init__(self, folder: Path | None = None, policy: Policy | None = None) -> None:
        self.folder = folder or home()
        self.policy = from_environment() if policy is None else policy
        self.db = Database(self.folder / FILE)

    # What pages write

    def enqueue(self, config: RunConfig, paused: bool = False, visitor: str | None = None) -> int:
        """Queue a config and return the run's number; a `paused` run waits before its first step."""
        with self.db.transaction() as db:
            return queue.join(db, config, visitor, paused)

    def control(self, run: int, action: Action) -> None:
        """Send an action to a run; a run that is not open ignores it."""
        with self.db.transaction() as db:
            request(db, run, action)

    def set_rate(self, runs: Iterable[int], lr: float) -> int | None:
        """Give runs another peak learning rate, all from the first step that none of them has taken.
        Returns that step, or None where nothing changes.

        The change is stored in their configs. Runs that are not open, that are at their last steps, that
        end before that step, or that have this rate already stay as they are. Raises ConfigError for a
        rate that is not allowed.
        """
        changed = False
        with self.db.transaction() as db:
            rows = [
                db.execute("SELECT * FROM runs WHERE id = ?", (number,)).fetchone()
                for number in runs
            ]
            opened = [
                (row["reach"], run)
                for row in rows
                if row is not None
                and (run := readable(row, self.policy.own_text)) is not None
                and run.is_open
                and not run.is_observed
            ]
            going = [(reach, run) for reach, run in opened if not reach or reach < run.config.steps]
            step = max((reach for reach, _ in going), default=0)
            for _, run in going:
                if step and step >= run.config.steps:
                    continue
                if (config := with_lr(run.trained, step, lr)) != run.config:
                    db.execute(
                        "UPDATE runs SET key = ?, config = ? WHERE id = ?",
                        (config.key, config.canonical(), run.id),
                    )
                    request(db, run.id, "lr", lr)
                    changed = True
        return step if changed else None

    def delete(self, run: int) -> str | None:
        """Delete a run with its steps. Returns the reason where it may not be deleted or does not exist."""
        with self.db.transaction() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
            if row is None:
                return f"there is no run {run}"
            if (why := stays(run, true_status(row), row["origin"])) is None:
                db.execute("DELETE FROM runs WHERE id = ?", (run,))  # its steps go with it
        return why

    def adopt(self, recording: Recording) -> None:
        """Store a finished run that ships with the product, unless its result is stored with its layers."""
        with self.db.transaction() as db:
            stored = self.latest(recording.key)
            if stored is None or not stored.is_done or stored.is_coarse:
                _keep(db, recording, "shipped")

    def adopt_cells(self, cells: Iterable[Recording]) -> None:
        """Store cells that ship with the product, except those whose results are stored."""
        with self.db.transaction() as db:
            done = self.done_keys()
            for cell in cells:
                if cell.key not in done:
                    _keep(db, cell, "shipped sweep")

    def keep_all(self, ended: Sequence[Recording], origin: Origin) -> list[int]:
        """Store runs that have ended: all of them, or on an error none. Returns their numbers."""
        with self.db.transaction() as db:
            return [_keep(db, recording, origin) for recording in ended]

    def drop_writing(self, hashes: Collection[str]) -> None:
        """Delete what models wrote of visitors' texts, except of the texts of these `hashes`."""
        self.db.connection.execute(
            "UPDATE steps SET writing = NULL WHERE writing IS NOT NULL AND run IN "
            "(SELECT id FROM runs WHERE json_valid(config) AND "
            "json_extract(config, '$.text') NOT IN (SELECT '' UNION ALL SELECT value FROM json_each(?)))",
            (json.dumps(list(hashes)),),
        )

    def done_keys(self) -> set[str]:
        """Keys of all stored results."""
        rows = self.db.connection.execute(f"SELECT DISTINCT key FROM runs WHERE {RESULT}")
        return {row[0] for row in rows}

    # What pages read

    def run(self, run: int) -> Run | None:
        """The run of a number, or None where there is none or it can't be read."""
        row = self.db.connection.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
        return readable(row, self.policy.own_text) if row else None

    def latest(self, key: str) -> Run | None:
        """The best run to show for a config: a finished one, else an open one, else any; of equals the
        newest.

        A cell of a sweep comes after finished and open runs, because it recorded few layers.
        """
        return next(self._ranked(key), None)

    def results(self, key: str) -> Iterator[Run]:
        """The results of a config, in the order in which `latest` prefers them."""
        return self._ranked(key, RESULT)

    def results_of(self, keys: Collection[str]) -> Iterator[Run]:
        """The results of many configs at once, those of each in the order of `results`."""
        rows = self.db.connection.execute(
            f"SELECT * FROM runs WHERE key IN (SELECT value FROM json_each(?)) AND {RESULT} "
            f"ORDER BY {RANK}, id DESC",
            (json.dumps(list(keys)),),
        ).fetchall()
        return filter(None, (readable(row, self.policy.own_text) for row in rows))

    def _ranked(self, key: str, which: str = "1") -> Iterator[Run]:
        """The runs of a config by RANK, of equals the newest first, no cells without a result. They are
        ranked all at once, and each is read when the iterator reaches it."""
        rows = self.db.connection.execute(
            f"SELECT id FROM runs WHERE key = ? AND {which} AND (NOT {CELL} OR {RESULT}) "
            f"ORDER BY {RANK}, id DESC",
            (key,),
        ).fetchall()
        return filter(None, (self.run(row["id"]) for row in rows))

    def turned(self, config: RunConfig) -> Run | None:
        """The newest open or finished run that began with these settings and was given another learning rate
        while it trained."""
        rows = self.db.connection.execute(
            "SELECT DISTINCT runs.id FROM runs JOIN controls ON controls.run = runs.id AND action = 'lr' "
            "WHERE json_valid(config) AND json_remove(config, '$.lr_edits') = json_remove(?, '$.lr_edits') "
            "ORDER BY runs.id DESC",
            (config.canonical(),),
        ).fetchall()
        edits = config.lr_edits
        began_so = (
            run
            for row in rows
            if (run := self.run(row["id"])) is not None
            and (run.is_open or run.is_done)
            and run.trained.lr_edits[: len(edits)] == edits
        )
        return next(began_so, None)

    def needed_texts(self) -> set[str]:
        """Hashes of the texts that must not be deleted: of open runs, and of runs whose link was copied."""
        rows = self.db.connection.execute(
            "SELECT DISTINCT json_extract(config, '$.text') FROM runs WHERE json_valid(config) "
            f"AND (linked OR {IS_OPEN})"
        )
        return {row[0] for row in rows if row[0]}

    def steps(self, run: Run, after: int = -1, layers: bool = True) -> Steps:
        """The steps of a run after step `after`, with or without layers. Raises StoreUnreadable."""
        names = (name if layers or name != "layers" else "NULL AS layers" for name in COLUMNS)
        rows = self.db.connection.execute(
            f"SELECT {', '.join(names)} FROM steps WHERE run = ? AND step > ? ORDER BY step",
            (run.id, after),
        ).fetchall()
        return read_steps(rows, run)

    def recording(self, run: Run, layers: bool = True) -> Recording:
        """What a run recorded, without `layers` in less time. Raises StoreUnreadable for damaged steps."""
        return Recording.of(run, self.steps(run, layers=layers))

    def listed(self, wanted: Query, limit: int, offset: int = 0) -> QueryResult:
        """At most `limit` wanted runs after `offset` others: newest first, cells of
        sweeps after all others, shipped ones last."""
        return listed(self.db.connection, wanted, limit, offset, self.policy.own_text)

    def losses(self, run: int) -> NDArray[np.float64]:
        """The losses [n] of a run in nats, with NaN and inf. Raises StoreUnreadable for damaged ones."""
        rows = self.db.connection.execute(
            "SELECT loss FROM steps WHERE run = ? ORDER BY step", (run,)
        ).fetchall()
        return read_losses(rows, run)

    def place(self, run: int) -> queue.QueuePlace | None:
        """A queued run's place and the estimated time until it begins; None for a run that does not wait."""
        return queue.place(self.db.connection, run)

    # What workers write

    def started(self, run: int, event: Started, pid: int, paused: bool, reach: int = 0) -> None:
        """Store that process `pid` has started the run; `reach` as in `append`."""
        with self.db.transaction() as db:
            _start(db, run, event, pid, "paused" if paused else "running", time.time())
            db.execute("UPDATE runs SET reach = ? WHERE id = ?", (reach, run))

    def append(self, run: int, steps: Iterable[Step], reach: int | None = None) -> None:
        """Commit steps, and with them `reach`: the first step that the run's process takes only after it
        has read the requests about the run again."""
        with self.db.transaction() as db:
            _append(db, run, steps)
            if reach is not None:
                db.execute("UPDATE runs SET reach = ? WHERE id = ?", (reach, run))

    def set_status(self, run: int, status: Literal["running", "paused"]) -> None:
        """Set the status of a run to running or paused."""
        self.db.connection.execute("UPDATE runs SET status = ? WHERE id = ?", (status, run))

    def end(
        self,
        run: int,
        status: str,
        bad: Diverged | None = None,
        message: str | None = None,
    ) -> None:
        """Close a run that is still open; a closed one stays as it is. A cell that was stopped is deleted."""
        _end(self.db.connection, run, status, bad, message)
        self.db.connection.execute(
            f"DELETE FROM runs WHERE id = ? AND status = 'stopped' AND {CELL}", (run,)
        )

    def controls(self, run: int, after: int) -> Sequence[tuple[int, str, float | None]]:
        """The requests about a run after number `after`: (number, action, value)."""
        return self.db.connection.execute(
            "SELECT id, action, value FROM controls WHERE run = ? AND id > ? ORDER BY id",
            (run, after),
        ).fetchall()

    # What a watch writes (`normviz.watch`)

    def observe(self, config: Observed, started: Started, probes: Sequence[str]) -> int:
        """Store that this process observes a run; returns its number. A shared server raises Refused."""
        if not self.policy.own_models:
            raise Refused(
                "this is a shared server, which stores no runs of own models: give to=None or a path"
            )
        with self.db.transaction() as db:
            run = _insert(db, config, "running", "observed", probes)
            _start(db, run, started, os.getpid(), "running", time.time())
        return run

    def end_observed(self, run: int, recording: Recording) -> None:
        """Close an observed run, with what its record says by now."""
        with self.db.transaction() as db:
            db.execute(
                "UPDATE runs SET config = ? WHERE id = ?", (recording.config.canonical(), run)
            )
            _end(db, run, recording.status, recording.first_bad, recording.message)

    # What the supervisor reads and writes

    def queued(self, cells: bool = False) -> list[int]:
        """The numbers of waiting runs, or of visitors' waiting `cells`, in the order in which workers get
        them."""
        return queue.queued(self.db.connection, cells)

    def handed(self, run: int) -> None:
        """Store that a worker gets this run. Where that fails, on a full disk, it is logged."""
        try:
            with self.db.transaction() as db:
                queue.handed(db, run)
        except StoreError as error:
            LOG.warning("the turn of run %s could not be counted: %s", run, error)

    def stops(self) -> list[int]:
        """Open runs with a request to stop."""
        rows = self.db.connection.execute(
            "SELECT DISTINCT run FROM controls JOIN runs ON runs.id = run "
            f"WHERE action = 'stop' AND {IS_OPEN} ORDER BY run"
        )
        return [number for (number,) in rows]

    def asked_by(self, visitor: str) -> frozenset[int]:
        """The runs that a visitor asked for on a page; not the cells of maps and claims."""
        rows = self.db.connection.execute(
            "SELECT id FROM runs WHERE visitor = ? AND origin = 'here'", (visitor,)
        )
        return frozenset(number for (number,) in rows)

    def view_counts(self) -> dict[int, int]:
        """Open runs and cells that a visitor queued, and how many views of each were counted."""
        rows = self.db.connection.execute(
            f"SELECT id, watched FROM runs WHERE {IS_OPEN} "
            f"AND visitor IS NOT NULL AND (origin = 'here' OR {CELL})"
        )
        return dict(rows.fetchall())

    def count_views(self, runs: Iterable[int]) -> None:
        """Count a view of each of these runs that is open."""
        rows = [(run,) for run in runs]
        with self.db.transaction() as db:
            db.executemany(
                f"UPDATE runs SET watched = watched + 1 WHERE id = ? AND {IS_OPEN}",
                rows,
            )

    def close_open(self) -> None:
        """Mark running and paused runs as failed: without a supervisor they have no process. Visitors' cells
        wait again; a terminal trains its own."""
        self.db.connection.execute(
            "UPDATE runs SET status = 'failed', ended = ?, message = ? "
            "WHERE status IN ('running', 'paused') AND origin = 'here'",
            (time.time(), LOST),
        )
        self.db.connection.execute(
            "UPDATE runs SET status = 'queued', turn = 0 "
            f"WHERE status IN ('queued', 'running') AND visitor IS NOT NULL AND {CELL}"
        )
        self.db.connection.execute(f"DELETE FROM runs WHERE {LEFT}")

    def announce(self, pid: int, ready: bool, slots: int = 1, workers: int = 0) -> None:
        """Store the supervisor's process, whether a warm worker waits, and its slots and workers."""
        self.db.connection.execute(
            "INSERT OR REPLACE INTO supervisor VALUES (1, ?, ?, ?, ?)",
            (pid, int(ready), slots, workers),
        )

    def retire(self) -> None:
        """Remove the entry of the supervisor, when it ends."""
        self.db.connection.execute("DELETE FROM supervisor")

    def supervisor(self) -> tuple[bool, bool]:
        """Whether a supervisor is alive, and whether a warm worker waits."""
        row = self.db.connection.execute("SELECT pid, ready FROM supervisor").fetchone()
        if row is None or not alive(row["pid"]):
            return False, False
        return True, bool(row["ready"])

    def is_training(self) -> bool:
        """Whether a run of this store trains now; paused ones do not count."""
        query = "SELECT 1 FROM runs WHERE status = 'running' AND alive(pid) LIMIT 1"
        return self.db.connection.execute(query).fetchone() is not None

    def version(self) -> int:
        """A number that changes when another connection has committed something."""
        return self.db.connection.execute("PRAGMA data_version").fetchone()[0]
