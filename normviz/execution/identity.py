"""The identity of a store's supervisor, so that any server can kill it if it hangs, and no other process.

A process id alone does not identify it: another container or machine has ids of its own, and an id
is used again after its process has ended.
"""

from __future__ import annotations

import json
import os
import platform
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

COMMAND = "normviz.execution.supervise"
"""The command line of every supervisor contains it."""
ELSEWHERE = "it runs on another machine or in another container"
UNKNOWN = "no process of this machine is known to be it"
FORBIDDEN = "it belongs to another user"


@dataclass(frozen=True)
class Identity:
    """A process: the machine on which its id is valid, the id, and its start time from the system."""

    machine: str
    pid: int
    started: str

    def end(self) -> str | None:
        """Kill the supervisor and all its workers; returns why it was not killed, if it was not."""
        if self.machine != machine():
            return ELSEWHERE
        now = started(self.pid)
        if now is None or now != self.started:
            return UNKNOWN
        try:
            kill(self.pid)
        except ProcessLookupError:
            pass  # it ended meanwhile
        except PermissionError:
            return FORBIDDEN
        return None


def write_identity(file: Path) -> None:
    """Write this process's identity into a file. Raises OSError."""
    own = Identity(machine(), os.getpid(), started(os.getpid()) or "unknown")
    file.write_text(json.dumps(asdict(own)))


def read_identity(file: Path) -> Identity | None:
    """The identity in a file; None if it holds none."""
    try:
        identity = Identity(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return identity if isinstance(identity.pid, int) and identity.pid > 0 else None


def machine() -> str:
    """Names where process ids are valid: this boot of this machine, and this container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def started(pid: int) -> str | None:
    """When the supervisor with this id started; None if no supervisor has this id."""
    try:
        process = psutil.Process(pid)
        line = " ".join(process.cmdline())
        if COMMAND not in line:
            return None
        if not psutil.LINUX:
            return str(process.create_time())
        # In ticks since the boot. `create_time` adds the time of the boot, which moves when the clock
        # is set. Field 22; the name in brackets before it may contain any character.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (psutil.Error, OSError):
        return None


def kill(pid: int) -> None:
    """Kill a process, and its process group where it leads one: a supervisor's workers are in its group.

    Raises ProcessLookupError and PermissionError.
    """
    if hasattr(os, "killpg") and os.getpgid(pid) == pid:
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
