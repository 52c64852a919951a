"""The supervisor: hands queued runs to warm workers, notices deaths, and makes stops certain."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from filelock import FileLock, Timeout

from ..config import estimated_gib, is_quick
from ..runs import UNWATCHED
from ..runs.store import Store, StoreDamaged, StoreError, pictures
from ..runs.store.rows import FOREIGN
from . import log, worker
from .budget import Budget, default_slots
from .client import DAMAGED
from .heartbeat import Heartbeat
from .housekeeping import Housekeeper, PendingEnds, too_many
from .process import describe_end, start
from .startup import Startup

TICK_SECONDS = 0.015
STOP_GRACE_SECONDS = 0.12
"""A worker that has not obeyed a stop by then (it may be inside one long step) is killed."""

SPARES = 2
JOIN_SECONDS = 0.1
"""A process closes its pipe shortly before it has an exit code."""
CALM_SECONDS = 0.15
"""For so long after a hand-out no process is forked: it would take the core on which the run begins."""

DRAWER = "normviz.export.drawer"
"""Draws a picture of ended runs; by its name, because it lies above this package."""
QUIET_SECONDS = 3.0
"""A drawer begins once nothing has trained and none has begun for so long: the next change comes first."""
DRAWING_SECONDS = 600.0
"""What a picture may take; a usual one takes two, and more than a minute on a busy machine."""

FULL_SECONDS = 1.0
"""Pause before the next try after the store could not be written."""


@dataclass
class Worker:
    """A process and our end of its pipe.

    warm     it waits for a run
    started  it was warm at least once
    took     it reported that it has its run; if it dies before, it has not touched the run
    returns  it measures quickly, and will be warm again in a moment
    patient  it has taken a cell of a map or a claim, and gets no run any more: its priority is low
    deaf     its end of the pipe is closed, which shows before the process has ended
    gib      estimated memory of its run in GiB
    ended    it was killed because its run is over
    why      the error, if it could not write it into the store itself
    """

    process: BaseProcess
    pipe: Connection
    warm: bool = False
    started: bool = False
    took: bool = False
    returns: bool = False
    patient: bool = False
    deaf: bool = False
    gib: float = 0.0
    ended: bool = False
    why: str = ""

    @property
    def lives(self) -> bool:
        """Whether its process can be reached."""
        return not self.deaf and self.process.is_alive()

    def end(self) -> None:
        """Kill the worker, because its run is over."""
        self.ended = True
        self.process.kill()

    def listen(self) -> None:
        """Read the worker's messages."""
        try:
            while not self.deaf and self.pipe.poll():
                message = self.pipe.recv()
                if message not in ("warm", "took"):
                    self.why = message
                    continue
                self.warm, self.took, self.started = message == "warm", message == "took", True
        except (EOFError, OSError):
            self.deaf, self.warm = True, False


class Supervisor:
    """One per store. `slots` runs train at once; paused ones do not count. Beside them as many cells of maps
    and claims train, at low priority, as the policy allows."""

    def __init__(self, store: Store, slots: int) -> None:
        self.store, self.slots = store, slots
        self.housekeeper, self.budget = Housekeeper(store), Budget(store.policy)
        # Forking from a preloaded process shares torch's memory and takes milliseconds. Elsewhere
        # than on Linux a fork of a process that has loaded system frameworks is not safe.
        if sys.platform == "linux":
            self.context = mp.get_context("forkserver")
            self.context.set_forkserver_preload(["normviz.execution.preload"])
        else:
            self.context = mp.get_context("spawn")
        self.spares: list[Worker] = []
        self.patient: list[Worker] = []
        """Warm workers that get cells alone."""
        self.cells = store.policy.processes or slots
        self.startup = Startup(store.folder)
        self.busy: dict[int, Worker] = {}
        self.ready = False
        self.pending_ends = PendingEnds(store)
        self.stopping: dict[int, float] = {}
        self.handed_out = 0.0
        self.paused = 0
        """How many of the busy workers have a paused run."""
        self.waiting = 0
        """Runs that wait for a worker although there is a slot for them; no spare is warm then."""
        self.drawer: tuple[int, subprocess.Popen[bytes]] | None = None
        """The picture that is drawn, or was last, and the process that draws it."""
        self.picture = 0
        """Pictures up to this number were drawn, or can't be."""
        self.trained = self.drew = time.monotonic()
        """When something trained, and when a drawer was started, last."""

    def tick(self) -> None:
        """One round: read workers, notice deaths, stop runs, hand out runs, start spares, draw."""
        self.listen()
        self.notice_deaths()
        self.pending_ends.settle()
        self.make_stops_certain()
        self.limit_paused()
        self.stop_unwatched()
        self.hand_out()
        self.hand_out_cells()
        self.refill()
        self.draw()

    def new_worker(self) -> Worker | None:
        """A new process, or None where none can be started."""
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=worker.main, args=(theirs, self.store.folder), daemon=True
        )
        try:
            process.start()
        except (OSError, EOFError) as error:  # also if the process that forks was killed
            self.startup.failed(f"no process can be started: {error}")
            return None
        finally:
            theirs.close()
        return Worker(process, ours)

    def listen(self) -> None:
        """Read all messages; workers that are warm, for the first time or again, are spares."""
        for each in self.workers():
            each.listen()
        for run, busy in list(self.busy.items()):
            if busy.warm:
                del self.busy[run]
                (self.patient if busy.patient else self.spares).append(busy)
        for surplus in self.spares[SPARES:]:
            surplus.process.kill()
        del self.spares[SPARES:]

    def notice_deaths(self) -> None:
        """Drop dead spares, and end the runs of workers that died."""
        self.patient = [each for each in self.patient if each.lives]
        dead = [spare for spare in self.spares if not spare.lives]
        self.spares = [spare for spare in self.spares if spare.lives]
        for spare in dead:
            if not spare.started:
                spare.process.join(JOIN_SECONDS)
                self.startup.failed(f"the last one {describe_end(spare.process.exitcode)}")
        for run, busy in list(self.busy.items()):
            if busy.process.is_alive():
                continue
            del self.busy[run]
            busy.listen()  # its last messages
            if busy.took:  # else the run still waits, and goes to another
                message = busy.why or _death_message(busy)
                # Else it trained its run to the end, or was killed on purpose.
                if busy.process.exitcode and not busy.ended:
                    log.event("died", run, why=message)
                if busy.process.exitcode == DAMAGED:
                    raise StoreDamaged(busy.why)
                self.pending_ends.end(run, message)  # no effect if the run has ended
        ready = any(spare.warm for spare in self.spares) or self.returning() > 0
        if ready or self.busy:
            self.startup.worked()
        if ready != self.ready:
            self.ready = ready
            self.store.announce(os.getpid(), ready, self.slots, len(self.workers()))

    def returning(self) -> int:
        """Workers that will be warm in a moment."""
        return sum(busy.returns for busy in self.busy.values())

    def workers(self) -> list[Worker]:
        """All processes."""
        return [*self.spares, *self.patient, *self.busy.values()]

    def refill(self) -> None:
        """Fork missing spares: at once if runs wait although a slot is free. Else not while a run begins,
        and not in place of workers that will be warm again in a moment. After failures only now and then."""
        if not self.startup.may_try(bool(self.spares)):
            return
        missing = self.waiting - len(self.spares)
        if time.monotonic() - self.handed_out > CALM_SECONDS:
            missing = max(missing, SPARES - len(self.spares) - self.returning())
        for _ in range(missing):
            if (fresh := self.new_worker()) is None:
                return
            self.spares.append(fresh)

    def make_stops_certain(self) -> None:
        """End runs whose stop was requested and that go on."""
        # Counted from when this process reads it: the clock that stored the time of the stop may jump.
        now = time.monotonic()
        self.stopping = {run: self.stopping.get(run, now) for run in self.store.stops()}
        for run, asked in self.stopping.items():
            busy = self.busy.get(run)
            if busy is None:
                self.pending_ends.end(run, None, "stopped")
            elif now - asked > STOP_GRACE_SECONDS:
                log.event("killed", run, why="it did not obey a stop")
                busy.end()
                self.pending_ends.end(run, None, "stopped")

    def hand_out(self) -> None:
        """Send waiting runs to spares, as far as slots and memory allow."""
        self.waiting = 0
        taken = self.busy.keys() | self.pending_ends.runs
        queued = [run for run in self.store.queued() if run not in taken]
        runs = {run: busy for run, busy in self.busy.items() if not busy.patient}
        active = sum(not self._is_paused(run) for run in runs) if queued else 0
        short = False
        for run in queued[: max(0, self.slots - active)]:
            record = self.store.run(run)
            if record is None:
                self.pending_ends.end(run, FOREIGN)
                continue
            gib = estimated_gib(record.trained)
            if short := not self.budget.fits(gib, (busy.gib for busy in self.busy.values())):
                break  # the runs after it wait too: the queue's order is kept
            spare = self.take_spare(run)
            if spare is None:
                self.waiting += 1
                continue
            spare.warm, spare.returns, spare.gib = False, is_quick(record.trained), gib
            self.busy[run] = spare
            self.store.handed(run)
            log.event("handed out", run, visitor=record.visitor)
            self.handed_out = time.monotonic()
        self.budget.record_waiting(short)

    def hand_out_cells(self) -> None:
        """Send waiting cells to patient workers, and to spares of which a run needs none."""
        free = self.cells - sum(busy.patient for busy in self.busy.values())
        taken = self.busy.keys() | self.pending_ends.runs
        queued = (
            (cell for cell in self.store.queued(cells=True) if cell not in taken) if free else ()
        )
        for cell in islice(queued, free):
            if self.store.run(cell) is None:
                self.pending_ends.end(cell, FOREIGN)
                continue
            worker = self._take(self.patient, cell)
            if worker is None and sum(spare.warm for spare in self.spares) > 1:
                worker = self._take(self.spares, cell)
            if worker is None:
                return
            worker.warm, worker.patient, worker.took = False, True, False
            self.busy[cell] = worker
            self.store.handed(cell)
        if not any(busy.patient for busy in self.busy.values()):
            for worker in self.patient:
                worker.process.kill()
            self.patient.clear()

    def take_spare(self, run: int) -> Worker | None:
        """A warm spare to which the run was sent, or None."""
        return self._take(self.spares, run)

    def _take(self, workers: list[Worker], run: int) -> Worker | None:
        """A warm one of these workers to which the run was sent, or None; sending to a dead one fails."""
        for spare in [spare for spare in workers if spare.warm]:
            workers.remove(spare)
            with contextlib.suppress(OSError):
                spare.pipe.send(run)
                return spare
        return None

    def draw(self) -> None:
        """Start a process that draws the next picture, once nothing has trained for a while. What trains ends
        it, and it is drawn again later; one that ends by itself or takes too long is not."""
        now = time.monotonic()
        trains = self.waiting + len(self.busy) > self.paused
        if trains:
            self.trained = now
        if self.drawer is not None and self.drawer[1].poll() is None:
            number, process = self.drawer
            if trains:
                self.picture = number - 1
            if trains or now - self.drew > DRAWING_SECONDS:
                process.kill()
        elif now - max(self.trained, self.drew) > QUIET_SECONDS and (
            picture := pictures.waiting(self.store, self.picture)
        ):
            self.drew, (self.picture, runs) = now, picture
            with contextlib.suppress(OSError):
                process = start(DRAWER, self.store.folder, runs, stdin=subprocess.PIPE)
                self.drawer = self.picture, process

    def limit_paused(self) -> None:
        """Stop paused runs beyond those that may keep their processes."""
        records = [record for run in self.busy if (record := self.store.run(run))]
        paused = {run.id: run.visitor for run in records if run.status == "paused"}
        self.paused = len(paused)
        for run in too_many(paused, self.budget.paused_limit(len(paused))):
            self.pending_ends.end(run, "paused while many others waited", "stopped")
            self.busy[run].end()

    def stop_unwatched(self) -> None:
        """Stop runs that no open page of a shared server has shown for a while; keep the store's limit."""
        for run in self.housekeeper.round():
            if run in self.busy:
                self.busy[run].end()
            self.pending_ends.end(run, UNWATCHED, "stopped")

    def _is_paused(self, run: int) -> bool:
        record = self.store.run(run)
        return record is not None and record.status == "paused"

    def sleep(self) -> None:
        """Wait until the store changes, or a worker sends a message or dies."""
        version, until = self.store.version(), time.monotonic() + 0.25
        workers = self.workers()
        watched: list[Connection | int] = [w.pipe for w in workers if not w.warm and not w.deaf]
        watched += [w.process.sentinel for w in workers]
        while self.store.version() == version and time.monotonic() < until:
            if wait(watched, TICK_SECONDS):
                return

    def close(self) -> None:
        """Kill all workers and the drawer."""
        for each in self.workers():
            each.process.kill()
        if self.drawer is not None:
            self.drawer[1].kill()


def _death_message(worker: Worker) -> str:
    kept = "" if worker.patient else "; everything committed up to there is kept"
    return f"the training process {describe_end(worker.process.exitcode)}{kept}"


def _wait_for_eof(stream: threading.Event) -> None:
    """Set the flag when standard input closes, because the server that started this process is gone."""
    while sys.stdin.buffer.read(4096):
        pass
    stream.set()


def serve(slots: int | None = None) -> int:
    """Supervise until standard input ends. Returns 0, also when another supervisor has the store.

    Waits while the disk is full. Raises StoreError for a store that can't be used.
    """
    store = Store()
    lock = FileLock(store.folder / "supervisor.lock")
    try:
        lock.acquire(
            timeout=0.5
        )  # servers hold it for a moment, to test whether a supervisor lives
    except Timeout:
        return 0
    log.begin(store.policy)
    heartbeat = Heartbeat(store.folder)
    gone = threading.Event()
    threading.Thread(target=_wait_for_eof, args=(gone,), daemon=True).start()
    slots = slots or default_slots(store.policy)
    supervisor = Supervisor(store, slots)
    began = False
    try:
        while not gone.is_set():
            try:
                if not began:
                    store.announce(os.getpid(), ready=False, slots=slots)
                    store.close_open()
                    began = True
                supervisor.tick()
                supervisor.sleep()
            except StoreDamaged:
                raise
            except StoreError as error:
                print(f"normviz: {error}", file=sys.stderr, flush=True)
                gone.wait(FULL_SECONDS)
            heartbeat.done()
    except KeyboardInterrupt:
        pass
    finally:
        supervisor.close()
        with contextlib.suppress(StoreError):
            store.close_open()
            store.retire()
    return 0
