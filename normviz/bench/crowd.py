"""The client side of the process that simulates the visitors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..home import shipped
from .weigh import cpu

NICE = 10
"""The same priority as the workers', so training and visitors share a core equally."""

PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Seen:
    """What the visitors saw since the last mark.

    watching     visitors with a usable page; coming: visitors that still wait for it
    rates, gaps  of each visitor: updates per second, and the longest pause between two in seconds
    interactive  seconds until the page was usable, of each new visitor
    failures     visits that ended unexpectedly, as sentences
    late         longest scheduling delay of the visitors' own process, in seconds
    """

    watching: int
    coming: int
    rates: list[float]
    gaps: list[float]
    interactive: list[float]
    failures: list[str]
    late: float


class Crowd:
    """Visitors of one server that all open the same query string."""

    def __init__(self, url: str, query: str) -> None:
        script = shipped("app") / "bench" / "load_visitors.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script), url, query],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)
        self.kept: list[Seen] = []

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.process.communicate()
        self.process.wait(30)

    def say(self, **words: Any) -> None:
        """Send a command to the visitors' process."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def mark(self) -> Seen:
        """Everything seen since the last mark. Raises RuntimeError if the process has ended."""
        assert self.process.stdout is not None
        self.say(mark=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the visitors' process has ended")
        return Seen(**json.loads(line))

    def reach(self, watchers: int) -> list[float]:
        """Wait until exactly `watchers` watch; returns each new visitor's seconds until a usable page.

        Raises TimeoutError if the server does not serve so many.
        """
        self.say(watchers=watchers)
        until, opened = time.monotonic() + PATIENCE_SECONDS, []
        while True:
            seen = self.mark()
            opened += seen.interactive
            if seen.watching == watchers:
                return opened
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{seen.watching} of {watchers} visitors have a page after {PATIENCE_SECONDS:g} s; "
                    f"{'; '.join(seen.failures[:3])}"
                )
            time.sleep(POLL_SECONDS)

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        return cpu(self.process.pid)
