"""The supervisor's pulse: a file that it touches while it works, so that a server sees it hang.

A lock tells that a process is there, not that it does anything: stopped by a signal, or stuck, it
would hold its store for ever. The file holds the supervisor's identity, so that any server can end it.
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
"""After so long the page says that the supervisor does not answer."""
HANGS_SECONDS = 10.0
"""After so long it is replaced."""
LOOK_SECONDS = HANGS_SECONDS / 2
"""A longer time between two looks of a server counts as this: the machine may have been asleep."""
STUCK_SECONDS = 60.0
"""A round of its work takes milliseconds; the first one waits until PyTorch is loaded."""


def _file(folder: Path) -> Path:
    return folder / "supervisor.pulse"


class Heartbeat:
    """The supervisor's side: beats by itself, as long as rounds of work are `done`."""

    def __init__(self, folder: Path) -> None:
        self.file = _file(folder)
        self.worked = time.monotonic()
        self.named = False
        self._beat()
        threading.Thread(target=self._go_on, daemon=True).start()

    def done(self) -> None:
        """A round of work is done."""
        self.worked = time.monotonic()

    def _go_on(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            if time.monotonic() - self.worked < STUCK_SECONDS:
                self._beat()

    def _beat(self) -> None:
        with suppress(OSError):  # a full disk does not take a new file; nobody is harmed by that
            self.file.touch()
            os.utime(self.file)
            if not self.named:
                identity.write(self.file)
                self.named = True


def listen(folder: Path) -> float:
    """Wait for the next beat, up to SILENT_SECONDS, for who has not looked before. Returns the seconds
    that were waited in vain: 0 where one came, or where there never was any."""
    pulse = HeartbeatReader(folder)
    pulse.silent()
    first = pulse.seen
    while first is not None:
        silent = pulse.silent()
        if pulse.seen != first:
            break
        if silent > SILENT_SECONDS:
            return silent
        time.sleep(LISTEN_SECONDS)
    return 0.0


class HeartbeatReader:
    """A server's side. Only whether the file changes counts: its time is that of a clock that may jump."""

    def __init__(self, folder: Path) -> None:
        self.file = _file(folder)
        self.seen: int | None = None
        self.since = self.looked = time.monotonic()

    def owner(self) -> Identity | None:
        """Which process wrote the file. Where it is `silent` after this was read, that is no new
        supervisor: writing its identity changes the file."""
        return identity.read(self.file)

    def silent(self) -> float:
        """Seconds without a beat, as far as this server has looked; 0 where there never was one."""
        try:
            now: int | None = self.file.stat().st_mtime_ns
        except OSError:
            now = None
        gap, self.looked = time.monotonic() - self.looked, time.monotonic()
        self.since += max(0.0, gap - LOOK_SECONDS)
        if now is None or now != self.seen:
            self.begin()
            self.seen = now
        return time.monotonic() - self.since

    def begin(self) -> None:
        """A new supervisor: it is given time for its first beat."""
        self.since = time.monotonic()
