"""The supervisor's heartbeat: a file that it touches while it works, so that a server notices if it hangs.

A lock shows that a process exists, not that it works: one that is stopped by a signal, or stuck, would
hold its store for ever. The file holds the supervisor's identity, so that any server can end it.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from . import identity
from .identity import Identity

BEAT_SECONDS, LISTEN_SECONDS = 0.5, 0.05
SILENT_SECONDS = 3.0
"""After so long a silence the page says that the supervisor does not answer."""
HANGS_SECONDS = 10.0
"""After so long a silence it is replaced."""
LOOK_SECONDS = HANGS_SECONDS / 2
"""A longer time between two reads of a server counts as this: the machine may have been asleep."""
STUCK_SECONDS = 60.0
"""A round of its work takes milliseconds; the first one waits until PyTorch is loaded."""


def _file(folder: Path) -> Path:
    return folder / "supervisor.pulse"


class Heartbeat:
    """The supervisor's side: a thread touches the file, as long as rounds of work are `done`."""

    def __init__(self, folder: Path) -> None:
        self.file = _file(folder)
        self.worked = time.monotonic()
        self.named = False
        self._beat()
        threading.Thread(target=self._repeat, daemon=True).start()

    def done(self) -> None:
        """A round of work is done."""
        self.worked = time.monotonic()

    def _repeat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            if time.monotonic() - self.worked < STUCK_SECONDS:
                self._beat()

    def _beat(self) -> None:
        with suppress(OSError):  # a full disk refuses a new file, which does no harm
            self.file.touch()
            os.utime(self.file)
            if not self.named:
                identity.write_identity(self.file)
                self.named = True


def listen(folder: Path) -> float:
    """Wait for the next heartbeat, up to SILENT_SECONDS; for a process that has not read the file before.
    Returns the seconds waited in vain: 0 if one came, or if there never was one."""
    reader = HeartbeatReader(folder)
    reader.silent()
    first = reader.last
    while first is not None:
        silent = reader.silent()
        if reader.last != first:
            break
        if silent > SILENT_SECONDS:
            return silent
        time.sleep(LISTEN_SECONDS)
    return 0.0


class HeartbeatReader:
    """A server's side. Only a change of the file counts: its time is of a clock that may jump.

    last    the file's time when it was read last, in ns; None without a file
    since   from when on silence is counted, by this process's clock
    looked  when the file was read last, by the same clock
    """

    def __init__(self, folder: Path) -> None:
        self.file = _file(folder)
        self.last: int | None = None
        self.since = self.looked = time.monotonic()

    def owner(self) -> Identity | None:
        """The process that wrote the file. If the heartbeat is `silent` after this was read, it is no new
        supervisor, because writing its identity changes the file."""
        return identity.read_identity(self.file)

    def silent(self) -> float:
        """Seconds without a heartbeat since this server began to read; 0 if there never was one."""
        try:
            now: int | None = self.file.stat().st_mtime_ns
        except OSError:
            now = None
        gap, self.looked = time.monotonic() - self.looked, time.monotonic()
        self.since += max(0.0, gap - LOOK_SECONDS)
        if now is None or now != self.last:
            self.begin()
            self.last = now
        return max(0.0, time.monotonic() - self.since)

    def begin(self, patience: float = 0.0) -> None:
        """Count from now, or, for a new supervisor, from so many seconds later or its first heartbeat."""
        self.since = time.monotonic() + patience
