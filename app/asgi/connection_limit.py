"""How many requests and WebSockets may be open: in all, for one visitor, and for one network address. Others
must wait. And what a message of a page may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from google.protobuf.message import DecodeError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from ..session import network_address
from ..session.pages import PAGES
from . import transport_limits
from .rate_limit import RateLimit, Watcher

IN_ALL = 1000
EACH = 30
"""Pages with charts, for one visitor."""
NAMELESS = 500
"""For all browsers without cookies together: a whole class may use the page in another site's frame."""

REQUESTS, CHARTS, OPENED = "requests", "charts", "pages"
AT_ONCE = {REQUESTS: (100, 500), CHARTS: (150, 500), OPENED: (150, 300)}
"""For one network address, which a whole school may share, and in all."""
MESSAGE = 64_000
"""Bytes of a page's message on a shared server, where no page takes a text; our pages send two thousand."""
WIDGETS = 500
"""Values of widgets in a message; our pages send some thirty. Each becomes a kilobyte in its session."""
TOO_MUCH = f"A message has more than {MESSAGE:,} bytes, or names more than {WIDGETS} values: reload the page"
OPENINGS = RateLimit(4)
"""Pages that connect in a second, of all visitors: two cores draw about so many."""
DOWNLOADS = RateLimit(0.5, burst=8.0)
"""Files that are made at a click in a second, of all visitors, who may ask for five at once: a replay takes
half a second of a core."""
CONNECTIONS_FULL = (
    "{} {} are open {}, the most that this server has at once. "
    "Close some, or try again in a minute."
)

_open: Counter[str | None] = Counter()


def full(who: str | None) -> str | None:
    """A sentence if this visitor (None without a cookie) may open no more connections; else None."""
    most, whose = (EACH, "of yours") if who else (NAMELESS, "of browsers without cookies")
    if _open[who] >= most:
        return f"Charts are open on {most} pages {whose}, the most at once"
    if _open.total() >= IN_ALL:
        return f"Charts are open on {IN_ALL} pages, the most at once"
    return None


@contextmanager
def held(who: str | None) -> Iterator[None]:
    """Count one connection as open."""
    _open[who] += 1
    try:
        yield
    finally:
        _add(_open, who, -1)


class Connections:
    """Middleware that counts requests and WebSockets by network address, and refuses those above the
    limits, and a page's messages of more than `message` bytes."""

    def __init__(self, app: ASGIApp, message: float = inf) -> None:
        self.app, self.message = app, message
        self.open = {kind: Counter[str]() for kind in AT_ONCE}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        kind, address = _kind(scope), network_address.of_request(scope)
        needs = (OPENED, REQUESTS) if _is_page(scope) else (kind,)
        if scope["type"] == "websocket" and transport_limits.is_penalised(address):
            await _refuse(scope, receive, send, "")
            return
        if sentence := next(filter(None, (self._full(need, address) for need in needs)), None):
            await _refuse(scope, receive, send, sentence)
            return
        self.open[kind][address] += 1
        page = Page(address, self.message, receive, send)
        try:
            if kind == OPENED:
                await OPENINGS.wait([Watcher(address)])
            await self.app(scope, page.receive if kind == OPENED else receive, send)
        finally:
            _add(self.open[kind], address, -1)

    def _full(self, kind: str, address: str) -> str | None:
        each, in_all = AT_ONCE[kind]
        if self.open[kind][address] >= each:
            return CONNECTIONS_FULL.format(each, kind, "from your network")
        if self.open[kind].total() >= in_all:
            return CONNECTIONS_FULL.format(in_all, kind, "in all")
        return None


class Page:
    """The messages of one page's browser, of `most` bytes each."""

    def __init__(self, address: str, most: float, receive: Receive, send: Send) -> None:
        self.address, self.most, self._receive, self._send = address, most, receive, send

    async def receive(self) -> Message:
        """The next message. One that no page of ours sends closes the WebSocket."""
        message = await self._receive()
        data = message.get("bytes") or b""
        asked = _read(data)
        is_large = len(data) > self.most
        if is_large or len(asked.rerun_script.widget_states.widgets) > WIDGETS:
            await self._send({"type": "websocket.close", "code": 1009, "reason": TOO_MUCH})
            return {"type": "websocket.disconnect", "code": 1009}
        if asked.backend_operation_request.HasField("deferred_file"):
            await DOWNLOADS.wait([Watcher(self.address)])
        return message


def _read(data: bytes) -> BackMsg:
    """A message of a page; an empty one where it can't be read, which Streamlit refuses."""
    try:
        return BackMsg.FromString(data)
    except DecodeError:
        return BackMsg()


def _add(counts: Counter, name: str | None, more: int) -> None:
    counts[name] += more
    if not counts[name]:
        del counts[name]


def _kind(scope: Scope) -> str:
    if scope["type"] == "http":
        return REQUESTS
    return OPENED if scope["path"].endswith("/_stcore/stream") else CHARTS


def _is_page(scope: Scope) -> bool:
    """Whether a browser asks for the HTML of a page, and will open its WebSocket next."""
    name = scope["path"].strip("/").rpartition("/")[2]
    return scope["type"] == "http" and name in ("", *PAGES)


async def _refuse(scope: Scope, receive: Receive, send: Send, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013, "reason": ""})
        return
    answer = PlainTextResponse(sentence, 503, headers={"Retry-After": "60"})
    await answer(scope, receive, send)
