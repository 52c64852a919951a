"""Faults for tests, injected for real: a disk without room, a damaged file, a clock that jumps."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from backend_kit import members, wait_for

from normviz.runs.store import Store
from normviz.runs.store.schema import FILE

CLOCK = """
import os, time
_now = time.time
def _shifted():
    try:
        with open(os.environ["CLOCK_SHIFT"]) as file:
            return _now() + float(file.read() or 0)
    except (KeyError, OSError):
        return _now()
time.time = _shifted
"""
PAGE = 4096


class SmallDisk:
    """A file system of a few megabytes: needs root."""

    def __init__(self, folder: Path, session: Callable[[], int]) -> None:
        self.folder = folder

    def fill(self) -> None:
        with (self.folder / "filler").open("wb", buffering=0) as file:
            try:
                while file.write(bytes(PAGE)) == PAGE:
                    pass
            except OSError:
                pass

    def empty(self) -> None:
        (self.folder / "filler").unlink()


class LimitedFiles:
    """No process of the session may let a file grow: anybody may inject that into his own processes.

    SQLite meets it as an error of writing, as it does where a quota is used up.
    """

    def __init__(self, folder: Path, session: Callable[[], int]) -> None:
        self.session = session

    def fill(self) -> None:
        self._limit(PAGE)

    def empty(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        for pid in members(self.session()):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[bool]:
    """Mounts a small file system over the folder; says whether that was allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    allowed = shutil.which("mount") is not None
    allowed = allowed and subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield allowed
    finally:
        if allowed:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def clock(folder: Path) -> tuple[dict[str, str], Callable[[float], None]]:
    """An environment whose Pythons have a clock of their own, and what sets how far it is off."""
    site, shift = folder / "site", folder / "shift"
    site.mkdir()
    (site / "sitecustomize.py").write_text(CLOCK)
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, "CLOCK_SHIFT": str(shift)}, lambda s: _write(shift, str(s))


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def pause(store: Store, *pids: int) -> None:
    """SIGSTOP to processes, at a moment when none of them writes: one that is stopped in the middle of a
    transaction would keep everybody else from writing."""
    while True:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            wait_for(
                lambda pid=pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "its stop"
            )
        with closing(sqlite3.connect(store.db.path, timeout=0.1, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)


def checkpoint(store: Store) -> Path:
    """All that was committed moves from the log into the file; returns its path."""
    store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return store.folder / FILE


def overwritten(path: Path) -> None:
    """Every page but the first is overwritten in place, as by a disk that goes bad."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(PAGE)
        file.write(b"\xa5" * (size - PAGE))


def header(path: Path) -> None:
    """The first hundred bytes are something else."""
    with path.open("r+b") as file:
        file.write(b"no header of anything " * 4)


def truncated(path: Path) -> None:
    """The second half is gone."""
    os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE + 100)


def no_database(path: Path) -> None:
    """Somebody's letter."""
    path.write_text("certainly not a database " * 1000)


def foreign(path: Path) -> None:
    """A database, but of another program."""
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()


DAMAGES = {one.__name__: one for one in (overwritten, header, truncated, no_database, foreign)}
