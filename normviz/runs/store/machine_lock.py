"""The lock of a machine: any number of processes train side by side, or one process measures times alone.

A timing beside a training run would be wrong, so both take this lock first. It is a lock of SQLite on a
file of its own, and training processes share it. The operating system releases it when a process dies,
even by SIGKILL. A timing process first claims the machine. From then on no training begins, so that many
short runs in a row can't keep it waiting for ever.

The reader-writer locks of libraries lack one of the two: fasteners gives its lock to two threads of a
process at once, and filelock lets new readers pass a waiting writer.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from .errors import StoreError

POLL_SECONDS = 0.02
CLAIM_SECONDS = 0.5
"""Other processes hold the claim for a moment, to find out whether it is held."""


def is_held(path: Path) -> bool:
    """Whether a process holds a lock file. Any number of processes may ask at once."""
    try:
        return _shuts_out(path)
    except (ImportError, OSError):  # without shared locks this process holds it for a moment
        try:
            with FileLock(path, timeout=CLAIM_SECONDS):
                return False
        except Timeout:
            return True


def _shuts_out(path: Path) -> bool:
    """Whether another process holds the exclusive lock that `FileLock` takes."""
    import fcntl

    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # no process ever took it
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    finally:
        os.close(file)  # which also releases the lock
    return False


def is_timing(folder: Path) -> bool:
    """Whether a process times on this machine for this data folder, or waits to."""
    return is_held(_claim(folder))


def _claim(folder: Path) -> Path:
    return folder / "timing.lock"


@contextmanager
def beside_others(folder: Path) -> Iterator[None]:
    """Hold the lock to train, after waiting for the end of any timing. Raises StoreError as
    `MachineLock.take`."""
    turn = MachineLock(folder)
    try:
        turn.wait(math.inf)
        yield
    finally:
        turn.leave()


class MachineLock:
    """The machine's lock for one thread: to train beside others, or, `alone`, to time."""

    def __init__(self, folder: Path, alone: bool = False) -> None:
        self.folder, self.alone = folder, alone
        self.claim = FileLock(_claim(folder), timeout=CLAIM_SECONDS)
        self._held: sqlite3.Connection | None = None

    def take(self) -> bool:
        """Take the lock without waiting; returns whether it is held now.

        With `alone` the claim is kept from the first try on. Raises StoreError where no lock can be made.
        """
        if self._held is not None:
            return True
        if not self._may():
            return False
        try:
            held = sqlite3.connect(self.folder / "turns.sqlite", timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        try:
            held.execute("BEGIN EXCLUSIVE" if self.alone else "BEGIN")
            held.execute("SELECT COUNT(*) FROM sqlite_master")  # a shared lock comes with reading
        except sqlite3.OperationalError as error:
            held.close()
            if "locked" in str(error):
                return False
            raise self._unusable(error) from None
        self._held = held
        return True

    def wait(self, seconds: float, otherwise: Callable[[], bool] = lambda: False) -> bool:
        """Take the lock within so many seconds, unless `otherwise` returns True first; returns whether it is
        held. Raises StoreError as `take`."""
        until = time.monotonic() + seconds
        while not self.take():
            if otherwise() or time.monotonic() > until:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def leave(self) -> None:
        """Release the lock and the claim, where they are held."""
        if self._held is not None:
            self._held.close()
            self._held = None
        self.claim.release()

    def _may(self) -> bool:
        if not self.alone:
            return not is_timing(self.folder)
        try:
            if not self.claim.is_locked:  # else from an earlier try
                self.claim.acquire()
        except Timeout:
            return False
        except OSError as error:
            raise self._unusable(error) from None
        return True

    def _unusable(self, error: Exception) -> StoreError:
        return StoreError(
            f"no lock can be made in {self.folder} ({error}): set NORMVIZ_HOME to a folder that can "
            "be written"
        )
