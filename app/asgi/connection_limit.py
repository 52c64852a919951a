"""How many pages may be open, of one network address and in all, and what a message of a page may be.

The proxy counts requests and the sockets of charts (assets/deploy/nginx.conf). Pages are counted here: a
visitor who finds no room reads why, in place of a page that waits for its socket.
"""

from __future__ import annotations

from collections import Counter
from math import inf

from google.protobuf.message import DecodeError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from ..session import network_address
from ..session.pages import asked
from . import websocket_limits
from .rate_limit import RateLimit, Watcher

EACH, IN_ALL = 150, 300
"""Open pages of one network address, which a whole school may share, and of all."""
SHARED_MESSAGE = 64_000
"""Bytes of a page's message on a shared server, where no page takes a text; our pages send two thousand."""
WIDGETS = 500
"""Values of widgets in a message; our pages send some thirty. Each becomes a kilobyte in its session."""
TOO_MUCH = (
    f"A message has more than {SHARED_MESSAGE:,} bytes, or names more than {WIDGETS} values: "
    "reload the page"
)
OPENINGS = RateLimit(4)
"""Pages that connect in a second, of all visitors: two cores draw about so many."""
DOWNLOADS = RateLimit(0.5, burst=8.0)
"""Files that are made at a click in a second, of all visitors, who may ask for five at once: a replay takes
half a second of a core."""
FULL = "{} pages are open {}, the most that this server has at once. Close some, or try again in a minute."


class Connections:
    """Middleware that counts the open pages of each network address, and refuses those above the limits, and
    a page's messages of more than `message` bytes."""

    def __init__(self, app: ASGIApp, message: float = inf) -> None:
        self.app, self.message = app, message
        self.open = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket."""
        address = network_address.of_request(scope)
        is_socket = scope["type"] == "websocket"
        is_page = is_socket and scope["path"].endswith("/_stcore/stream")
        if is_socket and websocket_limits.is_penalised(address):
            await _refuse(scope, receive, send, "")
        elif (is_page or asked(scope) is not None) and (sentence := self._full(address)):
            await _refuse(scope, receive, send, sentence)
        elif not is_page:
            await self.app(scope, receive, send)
        else:
            self.open[address] += 1
            try:
                await OPENINGS.wait([Watcher(address)])
                await self.app(scope, Page(address, self.message, receive, send).receive, send)
            finally:
                self.open[address] -= 1
                if not self.open[address]:
                    del self.open[address]

    def _full(self, address: str) -> str | None:
        if self.open[address] >= EACH:
            return FULL.format(EACH, "from your network")
        return FULL.format(IN_ALL, "in all") if self.open.total() >= IN_ALL else None


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


async def _refuse(scope: Scope, receive: Receive, send: Send, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013, "reason": ""})
        return
    answer = PlainTextResponse(sentence, 503, headers={"Retry-After": "60"})
    await answer(scope, receive, send)
