"""The supervisor: hands queued runs to warm workers, notices deaths, and makes stops certain."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from filelock import FileLock, Timeout

from ..store import Store
from . import worker

TICK_SECONDS = 0.015
STOP_GRACE_SECONDS = 0.12
"""A worker that has not obeyed a stop by then (it may be inside one long step) is killed."""

SPARES = 2
MAX_PAUSED = 6
"""Paused runs hold a process each. Of more, the one that was queued first is stopped."""


@dataclass
class Worker:
    """A process, our end of its pipe, whether it said it is warm, and the run it was given."""

    process: BaseProcess
    pipe: Connection
    warm: bool = False
    run: int | None = None


class Supervisor:
    """One per store. `slots` runs train at once; paused ones do not count."""

    def __init__(self, store: Store, slots: int) -> None:
        self.store, self.slots = store, slots
        # Forking from a preloaded process shares torch's memory and takes milliseconds. Elsewhere
        # than on Linux a fork of a process that has loaded system frameworks is not safe.
        if sys.platform == "linux":
            self.context = mp.get_context("forkserver")
            self.context.set_forkserver_preload(["normviz.runner.preload"])
        else:
            self.context = mp.get_context("spawn")
        self.spares: list[Worker] = []
        self.busy: dict[int, Worker] = {}
        self.ready = False

    def tick(self) -> None:
        """One round: deaths, stops, hand-outs, fresh spares."""
        self.notice_deaths()
        self.make_stops_certain()
        self.hand_out()
        self.limit_paused()
        while len(self.spares) < SPARES:
            self.spares.append(self.new_worker())

    def new_worker(self) -> Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=worker.main, args=(theirs, self.store.folder), daemon=True
        )
        process.start()
        theirs.close()
        return Worker(process, ours)

    def notice_deaths(self) -> None:
        for spare in self.spares:
            if not spare.warm and spare.pipe.poll():
                with contextlib.suppress(EOFError, OSError):
                    spare.warm = spare.pipe.recv() == "warm"
        self.spares = [spare for spare in self.spares if spare.process.is_alive()]
        for run, busy in list(self.busy.items()):
            if busy.process.is_alive():
                continue
            del self.busy[run]
            code = busy.process.exitcode
            self.store.end(run, "failed", message=_obituary(code))  # nothing if it ended properly
        ready = any(spare.warm for spare in self.spares)
        if ready != self.ready:
            self.ready = ready
            self.store.announce(os.getpid(), ready)

    def make_stops_certain(self) -> None:
        for run, asked in self.store.stops().items():
            busy = self.busy.get(run)
            if busy is None:
                self.store.end(run, "stopped")
            elif time.time() - asked > STOP_GRACE_SECONDS:
                busy.process.kill()
                self.store.end(run, "stopped")

    def hand_out(self) -> None:
        queued = [run for run in self.store.queued() if run not in self.busy]
        if not queued:
            return
        active = sum(not self._is_paused(run) for run in self.busy)
        for run in queued:
            spare = next((spare for spare in self.spares if spare.warm), None)
            if spare is None or active >= self.slots:
                return
            self.spares.remove(spare)
            with contextlib.suppress(OSError):
                spare.pipe.send(run)
            spare.run = run
            self.busy[run] = spare
            active += 1

    def limit_paused(self) -> None:
        paused = sorted(run for run in self.busy if self._is_paused(run))
        for run in paused[: max(0, len(paused) - MAX_PAUSED)]:
            self.store.end(run, "stopped", message="paused while many others waited")
            self.busy[run].process.kill()

    def _is_paused(self, run: int) -> bool:
        record = self.store.run(run)
        return record is not None and record.status == "paused"

    def sleep(self) -> None:
        """Until something changed in the store, or a worker spoke or died."""
        seen, until = self.store.version(), time.monotonic() + 0.25
        watched = [w.pipe for w in self.spares if not w.warm]
        watched += [w.process.sentinel for w in (*self.spares, *self.busy.values())]
        while self.store.version() == seen and time.monotonic() < until:
            if wait(watched, TICK_SECONDS):
                return

    def close(self) -> None:
        for each in (*self.spares, *self.busy.values()):
            each.process.kill()


def _obituary(code: int | None) -> str:
    how = f"was killed by signal {-code}" if code and code < 0 else f"ended with exit code {code}"
    return f"the training process {how}; everything committed up to there is kept"


def _ended(stream: threading.Event) -> None:
    """Set the flag when standard input closes: the server that started us is gone."""
    while sys.stdin.buffer.read(4096):
        pass
    stream.set()


def serve(slots: int | None = None) -> int:
    """Supervise until standard input ends. Returns 0; also when another supervisor has the store."""
    store = Store()
    lock = FileLock(store.folder / "supervisor.lock")
    try:
        lock.acquire(timeout=0.5)  # servers hold it for a moment, to see whether we live
    except Timeout:
        return 0
    gone = threading.Event()
    threading.Thread(target=_ended, args=(gone,), daemon=True).start()
    store.announce(os.getpid(), ready=False)
    store.close_open()
    supervisor = Supervisor(store, slots or os.cpu_count() or 1)
    try:
        while not gone.is_set():
            supervisor.tick()
            supervisor.sleep()
    except KeyboardInterrupt:
        pass
    finally:
        supervisor.close()
        store.close_open()
        store.retire()
    return 0
