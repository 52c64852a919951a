"""The server's end of the supervisor: start it, and start it again if it died."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress

from ..runs.store import Store
from ..runs.store.lock_file import is_held, supervisor_lock
from .heartbeat import HANGS_SECONDS, STUCK_SECONDS, HeartbeatReader
from .identity import COMMAND, UNKNOWN, kill
from .process import start

DAMAGED, UNUSABLE = 3, 4
"""Exit codes of a supervisor, and of a worker, whose store is damaged, or can't be used."""
CLOSE_SECONDS = 10.0


def is_supervised(store: Store) -> bool:
    """Whether a supervisor holds the store's lock. Its process id does not show it: after a restart of a
    container another process may have the same one."""
    return is_held(supervisor_lock(store.folder))


class SupervisorClient:
    """A supervisor for a store: this process's own, or one that another server already runs.

    The supervisor ends when its standard input closes, so it never outlives this process.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()
        self.tried = 0.0
        """When a start was tried last."""
        self.heartbeat = HeartbeatReader(store.folder)
        self.stuck: str | None = None
        """Why a supervisor that hangs can't be replaced from here, as a sentence."""

    @property
    def is_damaged(self) -> bool:
        """Whether the supervisor ended because the store is damaged."""
        return self.process is not None and self.process.poll() == DAMAGED

    def silent(self) -> float:
        """Seconds for which the supervisor has not answered, whichever server started it."""
        with self.lock:
            return self.heartbeat.silent()

    def ensure(self) -> None:
        """Start a supervisor unless one is alive; at most one try a second. One that hangs is
        replaced, whichever server started it; its runs end, with everything that they committed."""
        with self.lock:
            hangs = self.heartbeat.silent() >= HANGS_SECONDS
            if not hangs:
                self.stuck = None
            if self.process is not None and self.process.poll() is None:
                if not hangs:
                    return
                self._kill(self.process)
            if time.monotonic() - self.tried < 1.0:
                return
            self.tried = time.monotonic()
            if is_supervised(self.store) and not (hangs and self._end_other()):
                return
            if self.process is not None and self.process.stdin is not None:
                self.process.stdin.close()
            self.process = start(COMMAND, self.store.folder, stdin=subprocess.PIPE)
            self.heartbeat.begin(STUCK_SECONDS)

    def close(self) -> None:
        """End the supervisor that this process started, and with it all its workers."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            try:
                self.process.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:  # it hangs
                self._kill(self.process)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the supervisor that this process started, and all its workers."""
        with suppress(ProcessLookupError, PermissionError):  # it has just ended
            kill(process.pid)
        process.wait(CLOSE_SECONDS)

    def _end_other(self) -> bool:
        """Kill a hanging supervisor that another server started; whether that was done. Prints why not."""
        owner = self.heartbeat.owner()
        if self.heartbeat.silent() < HANGS_SECONDS:  # another server was first: this is its new one
            return False
        why = UNKNOWN if owner is None else owner.end()
        if why is None:
            return True
        problem = (
            f"the supervisor of {self.store.folder} holds its lock and does not answer, and can't be "
            f"replaced from here, since {why}: end it where it runs (python -m {COMMAND})"
        )
        if problem != self.stuck:
            print(f"normviz: {problem}", file=sys.stderr, flush=True)
        self.stuck = problem
        return False
