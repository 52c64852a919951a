"""Whether a lock file is held. The operating system releases one when its process dies, even by SIGKILL."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

HELD_SECONDS = 0.5
"""Without shared locks each process that asks holds the file for a moment; this one waits for the others."""


def supervisor_lock(folder: Path) -> Path:
    """The lock that the supervisor of a store's folder holds as long as it runs."""
    return folder / "supervisor.lock"


def is_held(path: Path) -> bool:
    """Whether a process holds a lock file. Any number of processes may ask at once."""
    try:
        return _shuts_out(path)
    except (ImportError, OSError):  # without shared locks this process holds it for a moment
        try:
            with FileLock(path, timeout=HELD_SECONDS):
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
