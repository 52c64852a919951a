"""Processes that train cells: each is warmed up once and then takes one cell after another.

Not the supervisor's workers: those belong to visitors and end with each run, so that a stop frees
everything; a cell is so short that starting a process for it would cost more than the cell. They
are plain child processes, so that a server may start them too, and one thread holds each.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..home import VARIABLE
from ..runs import Recording, failed
from .cell import no_result
from .grid import Cell

TRIES = 2
"""A cell whose process died is tried once more, in a fresh process, and then said to have failed."""


@dataclass(frozen=True)
class Began:
    """A process took the cell."""

    cell: Cell


@dataclass(frozen=True)
class Ended:
    """The cell's run."""

    cell: Cell
    measured: Recording


class Pool:
    """`processes` workers for the texts of one data folder; `news` says what they do.

    Cells are taken in order. `close` ends everything at once; cells in progress are lost.
    """

    def __init__(
        self, cells: Sequence[Cell], folder: Path, processes: int, early: bool = True
    ) -> None:
        self.news: SimpleQueue[Began | Ended] = SimpleQueue()
        self._cells = iter(cells)
        self.lock = threading.Lock()
        self._closed = False
        self._slots = [
            _Slot(self, folder, early) for _ in range(min(processes, max(1, len(cells))))
        ]
        for slot in self._slots:
            slot.start()

    def next_cell(self) -> Cell | None:
        """The next cell to train, or None when there is none."""
        with self.lock:
            return None if self._closed else next(self._cells, None)

    def close(self) -> None:
        """End all processes."""
        with self.lock:
            self._closed = True
        for slot in self._slots:
            slot.kill()

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def pids(self) -> list[int]:
        """The workers' process numbers."""
        return [slot.process.pid for slot in self._slots if slot.process is not None]


class _Slot(threading.Thread):
    """The thread that holds one worker process."""

    def __init__(self, pool: Pool, folder: Path, early: bool) -> None:
        super().__init__(daemon=True)
        self.pool, self.early = pool, early
        self.environment = {**os.environ, VARIABLE: str(folder), "OMP_NUM_THREADS": "1"}
        self.process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while (cell := self.pool.next_cell()) is not None:
            self.pool.news.put(Began(cell))
            tries, measured = 0, None
            while measured is None and tries < TRIES and not self.pool.is_closed:
                tries, measured = tries + 1, self._measure(cell)
            if self.pool.is_closed:
                return
            measured = measured or failed(cell.config, self._obituary)
            self.pool.news.put(Ended(cell, measured))
        self.kill()

    def _measure(self, cell: Cell) -> Recording | None:
        """The cell's run, as failed where no result could be read, or None where the process died."""
        try:
            process = self._warm()
            assert process.stdin is not None
            pickle.dump((cell.config.canonical(), self.early), process.stdin)
            process.stdin.flush()
            return self._heard(process)
        except Exception as error:  # unpickling may raise any, and so may a pool closed meanwhile
            died = self._has_died()
            self.kill()
            return None if died else no_result(cell.config, error)

    def _warm(self) -> subprocess.Popen[bytes]:
        """The process, started where there is none."""
        if self.process is None or self.process.poll() is not None:
            with self.pool.lock:
                if self.pool.is_closed:
                    raise OSError("closed")
                self.process = None  # it may not start
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "normviz.sweep.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=self.environment,
                    start_new_session=True,  # Ctrl-C is for us
                )
            self._heard(self.process)
        return self.process

    def _heard(self, process: subprocess.Popen[bytes]) -> Any:
        assert process.stdout is not None
        return pickle.load(process.stdout)

    @property
    def _obituary(self) -> str:
        code = None if self.process is None else self.process.poll()
        how = f"was killed by signal {-code}" if code and code < 0 else f"ended with code {code}"
        return f"its process {how}, twice"

    def _has_died(self) -> bool:
        """Whether the process ended by itself, or does so within a second."""
        if self.process is None:
            return False
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        return self.process.poll() is not None

    def kill(self) -> None:
        """End the process."""
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()
