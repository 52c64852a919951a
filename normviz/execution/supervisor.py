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
from multiprocessing.connection import wait

from filelock import FileLock, Timeout

from ..config import RunConfig, device_of, estimated_gib, is_quick
from ..cores import gpus
from ..runs import UNWATCHED
from ..runs.store import Store, StoreDamaged, StoreError, pictures
from ..runs.store.lock_file import supervisor_lock
from ..runs.store.rows import FOREIGN
from . import child, log, worker
from .budget import Budget, default_slots
from .child import Child
from .executor import Ended
from .heartbeat import Heartbeat
from .housekeeping import Housekeeper, PendingEnds, too_many
from .process import PATIENT, start
from .startup import Startup

TICK_SECONDS = 0.015
STOP_GRACE_SECONDS = 0.12
"""A worker that has not obeyed a stop by then (it may be inside one long step) is killed."""

SPARES = 2
"""Workers that wait for a run, warm."""
CALM_SECONDS = 0.15
"""For so long after a hand-out no process is forked: it would take the core on which the run begins."""

DRAWER = "normviz.export.drawer"
"""Draws a picture of ended runs; by its name, because it lies above this package."""
QUIET_SECONDS = 10.0
"""A drawer begins once nothing has trained and none has begun for so long: the next change comes first."""
LATE_SECONDS = 300.0
"""After so long without one a picture is drawn beside what trains: a busy server is never quiet."""
DRAWING_SECONDS = 600.0
"""What a picture may take; a usual one takes two, and more than a minute on a busy machine."""

FULL_SECONDS = 1.0
"""Pause before the next try after the store could not be written."""


@dataclass(frozen=True)
class Job:
    """What a worker has: a run of the store, or 0 while it loads what its first run would wait for.

    is_cell  it is a cell of a map or a claim
    returns  it measures quickly, and its worker will be free again in a moment
    gib      its estimated memory in GiB
    gpu      the number of the GPU whose memory that is; None for the machine's
    """

    run: int
    is_cell: bool = False
    returns: bool = False
    gib: float = 0.0
    gpu: int | None = None


class Supervisor:
    """One per store. `slots` runs train at once; paused ones do not count. Beside them as many cells of maps
    and claims train, at low priority, as the policy allows."""

    def __init__(self, store: Store, slots: int) -> None:
        self.store, self.slots = store, slots
        self.housekeeper, self.budget = Housekeeper(store), Budget(store.policy, gpus())
        # Forking from a preloaded process shares torch's memory and takes milliseconds. Elsewhere
        # than on Linux a fork of a process that has loaded system frameworks is not safe.
        if sys.platform == "linux":
            self.context = mp.get_context("forkserver")
            self.context.set_forkserver_preload([f"{__package__}.worker", f"{__package__}.preload"])
        else:
            self.context = mp.get_context("spawn")
        self.workers: list[Child[Job]] = []
        """Those of full priority get runs, the others cells."""
        self.startup = Startup(store.folder)
        self.ready = False
        self.pending_ends = PendingEnds(store)
        self.stopping: dict[int, float] = {}
        self.handed_out = 0.0
        self.paused = 0
        """How many of the busy workers have a paused run."""
        self.waiting = self.waiting_cells = 0
        """Runs, and cells, that wait for a worker although there is a slot for them; none is warm then."""
        self.drawer: tuple[int, subprocess.Popen[bytes]] | None = None
        """The picture that is drawn, or was last, and the process that draws it."""
        self.picture = 0
        """Pictures up to this number were drawn, or can't be."""
        self.draws_beside = False
        """Whether the drawer began while something trained."""
        self.trained = self.drew = time.monotonic()
        """When something trained, and when a drawer was started, last."""

    def tick(self) -> None:
        """One round: read workers, notice deaths, stop runs, hand out runs, start spares, draw."""
        self.listen()
        self.tell_readiness()
        self.pending_ends.settle()
        self.make_stops_certain()
        self.limit_paused()
        self.stop_unwatched()
        self.hand_out()
        self.hand_out_cells()
        self.refill()
        self.draw()

    @property
    def busy(self) -> dict[int, Child[Job]]:
        """The workers that have a run or a cell, by its number."""
        return {each.task.run: each for each in self.workers if each.task and each.task.run}

    def free(self, niceness: int) -> list[Child[Job]]:
        """The workers of a priority that wait for something, or will once they are warm."""
        mine = (each for each in self.workers if each.niceness == niceness)
        return [each for each in mine if each.task is None or not each.task.run]

    def jobs(self) -> list[Job]:
        """What the workers have."""
        return [each.task for each in self.busy.values() if each.task]

    def returning(self) -> int:
        """Workers that will be warm again in a moment."""
        return sum(each.task is not None and each.task.returns for each in self.workers)

    def begin(self, niceness: int) -> bool:
        """Start a worker; False where that is not possible."""
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=child.main, args=(theirs,), daemon=True)
        try:
            process.start()
        except (OSError, EOFError) as error:  # also if the process that forks was killed
            self.startup.failed(f"no process can be started: {error}")
            return False
        finally:
            theirs.close()
        new = Child[Job](process, ours, niceness)
        new.give(Job(0), worker.begin, self.store.folder, niceness)
        self.workers.append(new)
        return True

    def end(self, worker: Child[Job]) -> None:
        """Kill a worker, because what it has is over."""
        self.workers.remove(worker)
        worker.kill()
        worker.pipe.close()

    def listen(self) -> None:
        """Take in what workers have done, and end the runs of those that died."""
        for each in list(self.workers):
            try:
                if ended := each.read():
                    self.task_ended(each, ended)
            except EOFError:
                self.workers.remove(each)
                self.worker_died(each)

    def task_ended(self, worker: Child[Job], ended: Ended[Job]) -> None:
        """A worker is warm, or it has ended a run or a cell (`worker.train` says with what)."""
        if not ended.task.run:
            if ended.problem is not None:
                self.startup.failed("the last one failed while it started")
                self.end(worker)
            return
        may_take_another, has_surplus = ended.result is True, len(self.free(0)) > SPARES
        if not may_take_another or (has_surplus and not ended.task.is_cell):
            self.end(worker)
        error = ended.result if isinstance(ended.result, StoreError) else ended.problem
        if error is not None:
            log.event("died", ended.task.run, why=error)
            if isinstance(error, StoreDamaged):
                raise error
            self.pending_ends.end(ended.task.run, str(error))

    def worker_died(self, worker: Child[Job]) -> None:
        """A worker has died: its run ends with a sentence, unless it had not begun it."""
        job, how = worker.task, worker.describe_end()
        if job is not None and not job.run:
            self.startup.failed(f"the last one {how}")
        elif job is not None and worker.began:  # else the run still waits, and goes to another
            committed = "" if job.is_cell else "; everything committed up to there is kept"
            log.event("died", job.run, why=how)
            # No effect if the run has ended.
            self.pending_ends.end(job.run, f"the training process {how}{committed}")

    def tell_readiness(self) -> None:
        """Write into the store whether a run would begin at once, where that has changed."""
        ready = any(each.task is None for each in self.free(0)) or self.returning() > 0
        if ready or self.busy:
            self.startup.worked()
        if ready != self.ready:
            self.ready = ready
            self.store.announce(os.getpid(), ready, self.slots, len(self.workers))

    def refill(self) -> None:
        """Fork missing workers: at once if runs wait although a slot is free. Else not while a run begins,
        and not in place of workers that will be warm again in a moment. After failures only now and then."""
        spares, patient = self.free(0), self.free(PATIENT)
        if not self.waiting_cells and not any(job.is_cell for job in self.jobs()):
            for each in patient:
                self.end(each)
        if not self.startup.may_try(bool(spares)):
            return
        missing, cells = self.waiting - len(spares), 0
        if time.monotonic() - self.handed_out > CALM_SECONDS:
            missing = max(missing, SPARES - len(spares) - self.returning())
            cells = self.waiting_cells - len(patient)
        for niceness in [0] * missing + [PATIENT] * cells:
            if not self.begin(niceness):
                return

    def make_stops_certain(self) -> None:
        """End runs whose stop was requested and that go on."""
        # Counted from when this process reads it: the clock that stored the time of the stop may jump.
        now = time.monotonic()
        self.stopping = {run: self.stopping.get(run, now) for run in self.store.stops()}
        workers = self.busy
        for run, asked in self.stopping.items():
            busy = workers.get(run)
            if busy is None:
                self.pending_ends.end(run, None, "stopped")
            elif now - asked > STOP_GRACE_SECONDS:
                log.event("killed", run, why="it did not obey a stop")
                self.end(busy)
                self.pending_ends.end(run, None, "stopped")

    def hand_out(self) -> None:
        """Send waiting runs to spares, as far as slots and memory allow."""
        self.waiting = 0
        jobs = self.jobs()
        taken = {job.run for job in jobs} | self.pending_ends.runs.keys()
        queued = [run for run in self.store.queued() if run not in taken]
        runs = [job.run for job in jobs if not job.is_cell]
        active = sum(not self._is_paused(run) for run in runs) if queued else 0
        free, lacks_memory, gpus_are_full = self.slots - active, False, False
        for run in queued:
            if free <= 0:
                break
            record = self.store.run(run)
            if record is None:
                self.pending_ends.end(run, FOREIGN)
                continue
            gib, gpu = estimated_gib(record.trained), None
            if self.trains_on_gpu(record.trained):
                gpu = None if gpus_are_full else self.gpu_for(gib)
                if gpus_are_full := gpu is None:
                    continue  # so do those after it that need a GPU; others begin
            elif lacks_memory := not self.budget.fits(
                gib, (job.gib for job in self.jobs() if job.gpu is None)
            ):
                break  # the runs after it wait too: the queue's order is kept
            free -= 1
            if not self.give(Job(run, returns=is_quick(record.trained), gib=gib, gpu=gpu)):
                self.waiting += 1
                continue
            log.event("handed out", run, visitor=record.visitor)
            self.handed_out = time.monotonic()
        self.budget.record_waiting(lacks_memory)

    def trains_on_gpu(self, config: RunConfig) -> bool:
        """Whether a run will train on a GPU of this machine."""
        return bool(self.budget.gpus) and device_of(config)[0] == "cuda"

    def gpu_for(self, gib: float) -> int | None:
        """The GPU for a run of this estimated memory; None where all are full."""
        return self.budget.gpu_for(
            gib, [(job.gpu, job.gib) for job in self.jobs() if job.gpu is not None]
        )

    def hand_out_cells(self) -> None:
        """Send waiting cells to workers of low priority, one of each slot."""
        self.waiting_cells = 0
        jobs = self.jobs()
        if not (free := self.store.policy.cells_at_once - sum(job.is_cell for job in jobs)):
            return
        taken = {job.run for job in jobs} | self.pending_ends.runs.keys()
        waiting = (cell for cell in self.store.queued(cells=True) if cell not in taken)
        for cell in islice(waiting, free):
            if (record := self.store.run(cell)) is None:
                self.pending_ends.end(cell, FOREIGN)
                continue
            gib, gpu = 0.0, None
            if self.budget.gpus and record.trained.device == "cuda":  # else it trains on the CPU
                gib = estimated_gib(record.trained)
                if (gpu := self.gpu_for(gib)) is None:
                    continue
            if not self.give(Job(cell, is_cell=True, gib=gib, gpu=gpu)):
                self.waiting_cells += 1

    def give(self, job: Job) -> bool:
        """Send a run to a warm worker; False where there is none."""
        for each in self.free(PATIENT if job.is_cell else 0):
            if each.task is None and each.give(
                job, worker.train, self.store.folder, job.run, job.gpu
            ):
                self.store.handed(job.run)
                return True
        return False

    def draw(self) -> None:
        """Start a process that draws the next picture, once nothing has trained for QUIET_SECONDS, or, beside
        what trains, once none was drawn for LATE_SECONDS. The former is ended by what trains, and drawn again
        later; one whose process ended by itself or took too long is not."""
        now = time.monotonic()
        is_late = now - self.drew > LATE_SECONDS
        trains = self.waiting + self.waiting_cells + len(self.busy) > self.paused
        if trains:
            self.trained = now
        if self.drawer is not None and self.drawer[1].poll() is None:
            number, process = self.drawer
            ends = trains and not self.draws_beside
            if ends:
                self.picture = number - 1
            if ends or now - self.drew > DRAWING_SECONDS:
                process.kill()
        elif (is_late or now - max(self.trained, self.drew) > QUIET_SECONDS) and (
            picture := pictures.waiting(self.store, self.picture)
        ):
            self.drew, self.draws_beside, (self.picture, runs) = now, trains, picture
            with contextlib.suppress(OSError):
                process = start(DRAWER, self.store.folder, runs, stdin=subprocess.PIPE)
                self.drawer = self.picture, process

    def limit_paused(self) -> None:
        """Stop paused runs beyond those that may keep their processes."""
        workers = self.busy
        records = [record for run in workers if (record := self.store.run(run))]
        paused = {run.id: run.visitor for run in records if run.status == "paused"}
        self.paused = len(paused)
        for run in too_many(paused, self.budget.paused_limit(len(paused))):
            self.pending_ends.end(run, "paused while many others waited", "stopped")
            self.end(workers[run])

    def stop_unwatched(self) -> None:
        """Stop runs that no open page of a shared server has shown for a while; keep the store's limit."""
        for run in self.housekeeper.round():
            if busy := self.busy.get(run):
                self.end(busy)
            self.pending_ends.end(run, UNWATCHED, "stopped")

    def _is_paused(self, run: int) -> bool:
        record = self.store.run(run)
        return record is not None and record.status == "paused"

    def sleep(self) -> None:
        """Wait until the store changes, or a worker sends a message or dies."""
        version, until = self.store.version(), time.monotonic() + 0.25
        pipes = [each.pipe for each in self.workers]
        while self.store.version() == version and time.monotonic() < until:
            if wait(pipes, TICK_SECONDS):
                return

    def close(self) -> None:
        """Kill all workers and the drawer."""
        for each in list(self.workers):
            self.end(each)
        if self.drawer is not None:
            self.drawer[1].kill()


def _wait_for_eof(gone: threading.Event) -> None:
    """Set the flag when standard input closes, because the server that started this process is gone."""
    while sys.stdin.buffer.read(4096):
        pass
    gone.set()


def serve(slots: int | None = None) -> int:
    """Supervise until standard input ends. Returns 0, also when another supervisor has the store.

    Waits while the disk is full. Raises StoreError for a store that can't be used.
    """
    store = Store()
    lock = FileLock(supervisor_lock(store.folder))
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
