"""Whether workers can start: pauses between tries after failures, and a file that says so after a minute.

Where PyTorch can't be loaded, or there is no memory for it, each worker dies before it is warm.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

STARTING_SECONDS = 60.0
"""A server without a warm worker is starting for so long; then it is not well."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two tries; each time twice as long."""

PROBLEM = (
    "no process that trains could start for a minute ({}): stored results open all the same, new runs "
    "wait, and the server tries again every 30 s; its log has the error"
)


def _file(folder: Path) -> Path:
    return folder / "workers.failed"


def problem(folder: Path) -> str | None:
    """Why no worker of a folder's supervisor can start, as a sentence; None where one can, or may soon."""
    try:
        return _file(folder).read_text() or None
    except OSError:
        return None


class Startup:
    """The supervisor's side: failed starts since a worker last worked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reported = True  # perhaps by the supervisor before this one
        self.worked()

    def worked(self) -> None:
        """A worker is warm, or trains."""
        self.since, self.why = time.monotonic(), None
        self.pause, self.again = 0.0, float("-inf")
        if self.reported:
            with suppress(OSError):
                _file(self.folder).unlink(missing_ok=True)
            self.reported = False

    def failed(self, why: str) -> None:
        """A worker ended before it was warm."""
        self.why = why
        now = time.monotonic()
        if now >= self.again:  # else two that were started together
            self.pause = min(LONGEST_PAUSE, 2 * self.pause or FIRST_PAUSE)
            self.again = now + self.pause

    def may_try(self, is_trying: bool) -> bool:
        """Whether a worker may be started now; `is_trying` says that some start already. Writes the file if
        none has worked for a minute."""
        now = time.monotonic()
        if self.why is None and not is_trying:
            self.since = now
        if now - self.since > STARTING_SECONDS and not self.reported:
            with suppress(OSError):  # a full disk, which health says itself
                _file(self.folder).write_text(PROBLEM.format(self.why or "none is ready yet"))
                self.reported = True
        return now >= self.again
