"""Many simulated visitors of one server, for `normviz bench load`: a process that reads lines of JSON.

`{"watchers": 100, "per_second": 5, "churn": 0.5}` sets how many visitors watch, how many arrive a
second at most, and how many a second are replaced. `{"query": "..."}` sets the link that new visitors
open. `{"pause": 3.0}` sets how many seconds new visitors wait between two clicks; without it they do not
click. `{"looking": false}` closes the WebSockets of their charts. `{"mark": true}` prints what was
measured since the last mark.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from normviz.app.bench.load_visitor import Visitor

TICK_SECONDS = 0.05
ENOUGH_SECONDS = 3.0
"""A visitor whose duel trained for less, and for less than half of the time since the last mark, has no
rate of updates."""


class Crowd:
    """The visitors that are connected, and those that arrived since the last mark."""

    def __init__(self, base: str, query: str) -> None:
        self.base, self.query = base, query
        self.watchers, self.per_second, self.churn, self.pause = 0, 5.0, 0.0, 0.0
        self.number = 0
        self.looking = asyncio.Event()
        self.looking.set()
        self.there: dict[Visitor, asyncio.Task[None]] = {}
        self.came: list[Visitor] = []
        self.failures: list[str] = []
        self.credit = self.debt = self.late = 0.0
        self.marked = time.perf_counter()

    def tick(self, seconds: float) -> None:
        """Disconnect some visitors and start others, `seconds` after the last call."""
        self.late = max(self.late, seconds - TICK_SECONDS)
        for one, task in list(self.there.items()):
            if task.done():
                del self.there[one]
                if not task.cancelled() and (error := task.exception()):
                    self.failures.append(_said(error))
        self.debt += self.churn * seconds
        leaving = max(len(self.there) - self.watchers, int(self.debt))
        for one in list(self.there)[:leaving]:
            self.there.pop(one).cancel()
        self.debt -= int(self.debt)
        self.credit = min(1.0, self.credit) + self.per_second * seconds
        while len(self.there) < self.watchers and self.credit >= 1:
            self.credit -= 1
            self.number += 1
            address = f"198.18.{self.number // 250 % 250}.{1 + self.number % 250}"
            one = Visitor(self.base, self.query, self.looking, address=address, pause=self.pause)
            self.there[one] = asyncio.create_task(one.stay())
            self.came.append(one)

    def mark(self) -> dict[str, Any]:
        """What was measured since the last call."""
        watching = [one for one in self.there if one.interactive is not None]
        for one in watching:
            one.count()
        now = time.perf_counter()
        enough = min(ENOUGH_SECONDS, (now - self.marked) / 2)
        counted = [one for one in watching if one.trained > enough]
        seen = {
            "watching": len(watching),
            "coming": len(self.there) - len(watching),
            "rates": [one.updates / one.trained for one in counted],
            "gaps": [one.gap for one in counted],
            "interactive": [one.interactive for one in self.came if one.interactive is not None],
            "clicks": [seconds for one in watching for seconds in one.clicks],
            "failures": self.failures,
            "late": self.late,
        }
        for one in watching:
            one.mark()
        self.came = [one for one in self.came if one.interactive is None and one in self.there]
        self.failures, self.late, self.marked = [], 0.0, now
        return seen


def _said(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def serve(base: str, query: str) -> None:
    """Follow the commands on standard input until it ends."""
    crowd, lines = Crowd(base, query), asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    going = asyncio.create_task(_go(crowd))
    while line := await lines.readline():
        said = json.loads(line)
        if said.pop("mark", False):
            print(json.dumps(crowd.mark()), flush=True)
        if "looking" in said:
            (crowd.looking.set if said["looking"] else crowd.looking.clear)()
        for name in ("watchers", "per_second", "churn", "pause", "query"):
            if name in said:
                setattr(crowd, name, said[name])
        if going.done():
            going.result()
    going.cancel()


async def _go(crowd: Crowd) -> None:
    before = time.perf_counter()
    while True:
        await asyncio.sleep(TICK_SECONDS)
        now = time.perf_counter()
        crowd.tick(now - before)
        before = now


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
