"""What a worker does: it trains a run, steered by the controls in the store, or a cell, into the store."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..config import RunConfig, is_quick
from ..model import texts
from ..runs import Run
from ..runs.run import CELLS
from ..runs.store import Store, StoreError, cells
from ..training.events import Diverged, Edited, Event, Finished, OutOfMemory, Started, Step
from ..training.schedule import peak_at
from . import log
from .cell import lab_numbers, measure, warm
from .executor import first_line
from .housekeeping import end
from .process import lower_priority

FLUSH_SECONDS = 0.06
POLL_SECONDS = 0.01
OOM_SCORE = 500
"""From -1000 to 1000: as if it held half of the memory more than it does."""


@cache
def _store(folder: Path) -> Store:
    return Store(folder)


def begin(folder: Path, niceness: int) -> None:
    """The first task of a worker: load and try out what its first run would wait for."""
    _prefer_for_oom_kill()
    lower_priority(niceness)
    warm()
    log.begin(_store(folder).policy)


def train(folder: Path, run: int, gpu: int | None = None) -> bool | StoreError:
    """Train a run or a cell into the store; what trains on a GPU takes that of the number `gpu`. Returns
    whether this process may take another one, or the error where its end can't be written here: the
    supervisor will write it."""
    store = _store(folder)
    if gpu is not None:
        import torch

        with suppress(RuntimeError):  # of a GPU that PyTorch can't use: `train` says so
            torch.cuda.set_device(gpu)
    # While a model is built a collection finds nothing, and takes longer than building it.
    gc.disable()
    try:
        record = store.run(run)
        if record is not None and record.origin in CELLS:
            again = StoredCell(store, record).go()
        else:
            again = StoredRun(store, run).go()
        log.ended(store.run(run))
        return again
    except StoreError as error:
        return error
    finally:
        gc.enable()


def _prefer_for_oom_kill() -> None:
    """If memory runs out, the kernel kills a worker, whose run reports it, rather than the server."""
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(f"{OOM_SCORE}")


class StoredCell:
    """A cell of a map or a claim, trained or measured whole in this process."""

    def __init__(self, store: Store, cell: Run) -> None:
        self.store, self.cell = store, cell

    def go(self) -> bool:
        """Keep its result, or why it failed. Raises StoreError if that can't be written. Returns True."""
        cells.began(self.store, self.cell.id)
        try:
            failed = self.measure()
        except StoreError:
            raise
        except Exception as error:  # every error of a cell ends as its message
            log.exception(self.cell.id)
            failed = first_line(error)
        if failed is not None:
            end(self.store, self.cell.id, failed)
        return True

    def measure(self) -> str | None:
        """Store what comes of it; returns why nothing did."""
        cell = self.cell
        if cell.lab:
            cells.keep_reading(self.store, cell.id, *lab_numbers(cell.lab, cell.config.canonical()))
            return None
        measured = measure(cell.trained)
        if measured.status == "failed":
            return measured.message
        cells.keep(self.store, cell.id, measured)
        return None


class StoredRun:
    """One run on its way into the store, steered by the controls that the store holds for it."""

    def __init__(self, store: Store, run: int) -> None:
        from ..training.loop import Knobs

        self.store, self.run = store, run
        self.knobs = Knobs()
        self.waiting: list[Step] = []
        self.flushed = 0.0
        self.last_control = 0
        self.paused = self.stopped = self.announced = self.reported_paused = False
        self.credits = 0
        """Steps that it may take though it is paused: one for each "step" that was asked for."""
        self.device = ""
        self.config = RunConfig()
        self.next = self.reach = 0
        """The step that comes next, and the first one that waits until the store knows of it."""

    def go(self) -> bool:
        """Train to the end, to a stop, or to an error that is stored as a sentence.

        Returns True if this process may take another run: it measured quickly and nothing went wrong.
        """
        try:
            record = self.store.run(self.run)
            if record is None or record.status != "queued":
                return True
            quick = is_quick(record.trained)
            if not quick:
                lower_priority(10)  # the page stays responsive; a measurement is what it waits for
            self.config = record.trained
            self.read_controls()
            self.follow(self.config)
            return quick and self.device == "cpu"
        except MemoryError:
            self.fail(str(OutOfMemory(self.device)))
        except StoreError as error:
            self.waiting.clear()  # there is no room for these
            self.fail(str(error))
        except Exception as error:  # every error of a run ends as its message
            log.exception(self.run)
            self.fail(first_line(error))
        return False

    def follow(self, config: RunConfig) -> None:
        """Train, and write every event into the store."""
        from ..training.loop import train

        bad: Diverged | None = None
        for event in self.steered(train(config, self.knobs)):
            match event:
                case Started():
                    self.reach = 0 if self.paused else 1
                    self.store.started(self.run, event, os.getpid(), self.paused, self.reach)
                    self.flushed = time.monotonic()
                    log.event("started", self.run, pid=os.getpid())
                    self.announced, self.device = True, event.device
                    self.reported_paused = self.paused
                case Step():
                    self.waiting.append(event)
                    self.next = event.step + 1
                    if event.step == 0 or time.monotonic() - self.flushed > FLUSH_SECONDS:
                        self.flush(self.pace())
                        gc.enable()
                case Edited():
                    pass  # the store has it already
                case Diverged():
                    bad = event
                case Finished():
                    self.flush()
                    status = "diverged" if bad else "finished"
                    self.store.end(self.run, status, bad)
        if self.stopped:
            self.flush()
            self.store.end(self.run, "stopped")
        if config.text and not texts.is_here(config.text):
            self.store.drop_writing(texts.listed())

    def steered(self, events: Iterator[Event]) -> Iterator[Event]:
        """Pass events on; between steps obey pause, step, resume, stop and a new learning rate."""
        for event in events:
            yield event
            if isinstance(event, Step | Started):
                self.credits -= isinstance(event, Step) and self.credits > 0
                while not self.may_go_on():
                    if self.stopped:
                        return
                self.knobs.lr = peak_at(self.config, self.next)

    def may_go_on(self) -> bool:
        """Whether the next step may be taken now; if the run rests, waits for a moment first.

        Controls are read after the run's reach is committed and before a step up to it is taken,
        so `Store.set_rate` finds a step that no lane has taken.
        """
        self.read_controls()
        if self.stopped:
            return False
        if self.is_resting():
            self.flush()
            time.sleep(POLL_SECONDS)
            return False
        if self.next < self.reach:
            return True
        self.flush(self.pace())
        return False

    def pace(self) -> int:
        """Steps that take about as long as there is between two commits, at least one."""
        seconds = time.monotonic() - self.flushed
        return max(1, round(len(self.waiting) * FLUSH_SECONDS / seconds)) if seconds else 1

    def is_resting(self) -> bool:
        """Whether the run takes no step now. Writes into the store whether it is paused, after all its
        steps."""
        if self.announced and self.paused != self.reported_paused:
            self.flush()
            self.store.set_status(self.run, "paused" if self.paused else "running")
            self.reported_paused = self.paused
        return self.paused and self.credits == 0

    def read_controls(self) -> None:
        """Take in the requests that came since the last call."""
        for number, action, _ in self.store.controls(self.run, self.last_control):
            self.last_control = number
            match action:
                case "pause":
                    self.paused = True
                case "resume":
                    self.paused, self.credits = False, 0
                case "step":
                    self.paused, self.credits = True, self.credits + 1
                case "stop":
                    self.stopped = True
                case "lr":
                    if (record := self.store.run(self.run)) is not None:
                        self.config = record.trained

    def flush(self, ahead: int = 0) -> None:
        """Commit the steps that wait, and that so many steps may follow."""
        reach = self.next + ahead
        if self.waiting or reach != self.reach:
            self.store.append(self.run, self.waiting, reach)
            self.waiting.clear()
            self.reach = reach
        self.flushed = time.monotonic()

    def fail(self, message: str) -> None:
        """Close the run with this message. Raises StoreError if that can't be written either."""
        with suppress(StoreError):
            self.flush()
        end(self.store, self.run, message)
