"""Simulated visitors of one server, for `normviz bench load`: a process that reads lines of JSON.

A visitor loads the page over Streamlit's WebSocket, then the charts' numbers. It sends what a browser sends,
and renders nothing.

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
from base64 import b64decode
from dataclasses import dataclass, field
from random import random
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

PATIENCE_SECONDS = 120.0
"""A visitor without a page after this time counts as refused."""

TICK_SECONDS = 0.05
ENOUGH_SECONDS = 3.0
"""A visitor whose duel trained for less, and for less than half of the time since the last mark, has no
rate of updates."""

GET = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {address}\r\n"
    "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n"
)
AS_BROWSER: dict[str, Any] = {
    "compression": None, "max_size": None, "ping_interval": None, "open_timeout": PATIENCE_SECONDS
}  # fmt: skip
FILES = ("", "_stcore/health", "_stcore/host-config")
"""What a browser requests before it opens the WebSocket; Streamlit's scripts come from its cache."""


@dataclass(eq=False)
class Visitor:
    """A visitor that loads the page and watches the charts until its task is cancelled.

    base, query  the server's address, and the link that it opens
    looking      set while the visitors watch; else the WebSockets of their charts are closed
    interactive  seconds from the first request until the script run had ended and the charts had numbers
    updates      messages with new numbers since the last mark
    trained      seconds since the last mark in which a run of the duel trained, so that numbers could come
    gap          the longest pause between two messages with new numbers meanwhile, in seconds
    address      what the visitor's proxy states as its network address
    pause        seconds between two clicks; 0 for none
    clicks       for each click, seconds until its script run had ended
    what         what the page told its player to show, and `scripts` which files that needs
    have         of each lane how many losses and how many records of layers have come
    """

    base: str
    query: str
    looking: asyncio.Event
    interactive: float | None = None
    updates: int = 0
    trained: float = 0.0
    gap: float = 0.0
    address: str = "127.0.0.1"
    pause: float = 0.0
    clicks: list[float] = field(default_factory=list)
    what: dict[str, Any] = field(default_factory=dict)
    scripts: list[str] = field(default_factory=list)
    have: list[tuple[int, int]] = field(default_factory=list)

    _rendered: asyncio.Event = field(default_factory=asyncio.Event)
    _training: bool = False
    _counted: float = 0.0
    _last: float = 0.0

    def _socket(self, path: str) -> connect:
        url = f"{self.base.replace('http', 'ws', 1)}/{path}"
        return connect(url, additional_headers={"X-Forwarded-For": self.address}, **AS_BROWSER)

    async def stay(self) -> None:
        """The whole visit. Raises OSError, TimeoutError or an error of the WebSocket."""
        came = time.perf_counter()
        async with asyncio.timeout(PATIENCE_SECONDS):
            for path in FILES:
                await self._fetch(path)
            page = await self._socket("_stcore/stream")
        async with page:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._rerun(page)
                await self._read_page(page)
                for script in self.scripts:
                    await self._fetch(f"normviz/{script}.js")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._drain(page))
                if self.pause:
                    tasks.create_task(self._click(page))
                while True:
                    await self.looking.wait()
                    await self._look(page, came, tasks)

    def mark(self) -> None:
        """Reset the counts."""
        self.updates, self.trained, self.gap, self.clicks = 0, 0.0, 0.0, []
        self._counted = self._last = time.perf_counter()

    def count(self, training: bool | None = None) -> None:
        """Count the time until now; from now on a run trains or not, None for no change."""
        now = time.perf_counter()
        if self._training:
            self.trained += now - self._counted
            self.gap = max(self.gap, now - self._last)
        else:
            self._last = now
        self._counted = now
        if training is not None:
            self._training = training

    async def _fetch(self, path: str) -> None:
        host = urlsplit(self.base).netloc
        name, _, port = host.partition(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        writer.write(GET.format(path=f"/{path}", host=host, address=self.address).encode())
        status = await reader.readline()
        await reader.read()
        writer.close()
        if b" 200 " not in status:
            raise ConnectionError(f"/{path} answers {status.decode().strip()}")

    async def _rerun(self, page: ClientConnection, later: float = 0.0) -> None:
        await asyncio.sleep(later)
        ask = BackMsg()
        ask.rerun_script.query_string = self.query
        await page.send(ask.SerializeToString())

    async def _click(self, page: ClientConnection) -> None:
        """Ask for the page again and again, as a click does."""
        await asyncio.sleep(random() * self.pause)
        while True:
            self._rendered.clear()
            began = time.perf_counter()
            await self._rerun(page)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._rendered.wait()
            self.clicks.append(time.perf_counter() - began)
            await asyncio.sleep(self.pause)

    async def _read_page(self, page: ClientConnection) -> None:
        """Read messages until the script run has ended."""
        while True:
            message = ForwardMsg.FromString(_bytes(await page.recv()))
            if message.WhichOneof("type") == "script_finished":
                return
            self._notice(message)

    def _notice(self, message: ForwardMsg) -> None:
        element = message.delta.new_element
        if element.WhichOneof("type") == "bidi_component":
            data = json.loads(element.bidi_component.json or "{}")
            if "what" in data:
                self.what, self.scripts = data["what"], data["scripts"]

    def _asked(self) -> dict[str, Any]:
        if not self.what:
            raise ConnectionError("the page came without charts")
        return self.what["topic"] | {"linear": False, "have": self.have}

    async def _look(self, page: ClientConnection, came: float, tasks: asyncio.TaskGroup) -> None:
        """Receive numbers while visitors watch. When a run changes, request one rerun, as the player
        does; it serves all changes until then."""
        told, asking = None, None
        async with self._socket("normviz/numbers") as numbers:
            await numbers.send(json.dumps(self._asked()))
            async for text in numbers:
                out = json.loads(text)
                status = out["status"]
                self.count(":running:" in status["signature"])
                self._take(out.get("lanes", []))
                if self.interactive is None and "charts" in out:
                    self.interactive = time.perf_counter() - came
                    self.mark()
                if status["signature"] == self.what["signature"]:
                    told = None
                elif status["signature"] != told:
                    told = status["signature"]
                    if asking is None or asking.done():
                        later = random() * status.get("spread", 0)
                        asking = tasks.create_task(self._rerun(page, later))
                if not self.looking.is_set():
                    return
        raise ConnectionError("the server closed the charts' connection")

    def _take(self, lanes: list[dict[str, Any]]) -> None:
        """Count the message, and what it adds to each lane."""
        if not any(lane["loss"] for lane in lanes):
            return
        self._last = time.perf_counter()
        self.updates += 1
        self.have = [
            (
                lane["from"][0] + len(b64decode(lane["loss"])) // 4,
                lane["from"][1] + len(lane["records"]),
            )
            for lane in lanes
        ]

    async def _drain(self, page: ClientConnection) -> None:
        async for data in page:
            message = ForwardMsg.FromString(_bytes(data))
            if message.WhichOneof("type") == "script_finished":
                self._rendered.set()
            self._notice(message)
        raise ConnectionError("the server closed the page's connection")


def _bytes(data: str | bytes) -> bytes:
    return data if isinstance(data, bytes) else data.encode()


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
        for visitor, task in list(self.there.items()):
            if task.done():
                del self.there[visitor]
                if not task.cancelled() and (error := task.exception()):
                    self.failures.append(_said(error))
        self.debt += self.churn * seconds
        leaving = max(len(self.there) - self.watchers, int(self.debt))
        for visitor in list(self.there)[:leaving]:
            self.there.pop(visitor).cancel()
        self.debt -= int(self.debt)
        self.credit = min(1.0, self.credit) + self.per_second * seconds
        while len(self.there) < self.watchers and self.credit >= 1:
            self.credit -= 1
            self.number += 1
            address = f"198.18.{self.number // 250 % 250}.{1 + self.number % 250}"
            visitor = Visitor(
                self.base, self.query, self.looking, address=address, pause=self.pause
            )
            self.there[visitor] = asyncio.create_task(visitor.stay())
            self.came.append(visitor)

    def mark(self) -> dict[str, Any]:
        """What was measured since the last call."""
        watching = [visitor for visitor in self.there if visitor.interactive is not None]
        for visitor in watching:
            visitor.count()
        now = time.perf_counter()
        enough = min(ENOUGH_SECONDS, (now - self.marked) / 2)
        counted = [visitor for visitor in watching if visitor.trained > enough]
        seen = {
            "watching": len(watching),
            "coming": len(self.there) - len(watching),
            "rates": [visitor.updates / visitor.trained for visitor in counted],
            "gaps": [visitor.gap for visitor in counted],
            "interactive": [
                visitor.interactive for visitor in self.came if visitor.interactive is not None
            ],
            "clicks": [seconds for visitor in watching for seconds in visitor.clicks],
            "failures": self.failures,
            "late": self.late,
        }
        for visitor in watching:
            visitor.mark()
        self.came = [
            visitor
            for visitor in self.came
            if visitor.interactive is None and visitor in self.there
        ]
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
        command = json.loads(line)
        if command.get("mark"):
            print(json.dumps(crowd.mark()), flush=True)
        if "looking" in command:
            (crowd.looking.set if command["looking"] else crowd.looking.clear)()
        for name in ("watchers", "per_second", "churn", "pause", "query"):
            if name in command:
                setattr(crowd, name, command[name])
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
