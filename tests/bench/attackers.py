"""Clients that ask too much of a server, for `attack.py`: a process for one kind of attack.

It connects to a server on this machine alone, with as many connections as an attack names below, and ends
when its standard input ends. Each attack comes from one network address, which it states as a proxy would.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

FROM = "203.0.113.7"
HEADERS = {"X-Forwarded-For": FROM}
STREAM, NUMBERS = "_stcore/stream", "normviz/numbers"
RETRY_SECONDS = 0.2
"""Between two tries of a connection that the server has closed."""
MASK = b"\0\0\0\0"
HANDSHAKE = (
    "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    f"X-Forwarded-For: {FROM}\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
UPLOAD = (
    "PUT /_stcore/upload_file/{page}/f{n} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n"
    f"X-Forwarded-For: {FROM}\r\nX-Xsrftoken: {{token}}\r\n"
    "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 900000\r\n\r\n"
    '--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
)


class Target:
    """The server."""

    def __init__(self, base: str) -> None:
        self.host = urlsplit(base).netloc
        self.name, _, port = self.host.partition(":")
        self.port = int(port)
        if self.name != "127.0.0.1":
            raise ValueError(f"the server is {self.name!r}, allowed is 127.0.0.1")

    def socket(self, path: str) -> connect:
        """A WebSocket at a path, not open yet."""
        return connect(
            f"ws://{self.host}/{path}",
            additional_headers=HEADERS,
            compression=None,
            max_size=None,
            ping_interval=None,
        )

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A plain connection."""
        return await asyncio.open_connection(self.name, self.port)

    async def raw_socket(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A WebSocket whose frames the caller writes byte by byte."""
        reader, writer = await self.open()
        writer.write(HANDSHAKE.format(path=path, host=self.host).encode())
        if b" 101 " not in await reader.readline():
            writer.close()
            raise ConnectionError("refused")
        await reader.readuntil(b"\r\n\r\n")
        return reader, writer


def rerun(text: str = "") -> bytes:
    """The message that asks for a page, with a text in one of its boxes."""
    ask = BackMsg()
    ask.rerun_script.query_string = ""
    if text:
        state = ask.rerun_script.widget_states.widgets.add()
        state.id, state.string_value = f"$$ID-{secrets.token_hex(8)}-None", text
    return ask.SerializeToString()


async def finished(page: ClientConnection) -> None:
    """Read until the page has rendered."""
    while True:
        data = await page.recv()
        message = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
        if message.WhichOneof("type") == "script_finished":
            return


async def replay(page: ClientConnection) -> BackMsg:
    """Read until the page has rendered: the message that asks for its first file, which is the replay."""
    ask = BackMsg()
    asked = ask.backend_operation_request
    while True:
        data = await page.recv()
        message = ForwardMsg.FromString(data if isinstance(data, bytes) else data.encode())
        asked.session_id = asked.session_id or message.new_session.initialize.session_id
        button = message.delta.new_element.download_button
        asked.deferred_file.file_id = asked.deferred_file.file_id or button.deferred_file_id
        if message.WhichOneof("type") == "script_finished":
            return ask


async def frames(at: Target, number: int) -> None:
    """A frame of 4 or 19 MB that does not end."""
    size = 4_000_000 if number % 2 else 19_000_000
    reader, writer = await at.raw_socket(STREAM if number % 3 else NUMBERS)
    writer.write(b"\x82\xff" + struct.pack("!Q", size) + MASK)
    for _ in range((size - 1) // 65_536):
        writer.write(b"a" * 65_536)
        await writer.drain()
    await reader.read()
    writer.close()


async def fragments(at: Target, number: int) -> None:
    """Fragments of a message that does not end."""
    del number
    _, writer = await at.raw_socket(STREAM)
    pong = b"\x8a\x80" + MASK
    first, more = b"\x02\x82" + MASK + b"ab", b"\x00\x82" + MASK + b"ab"
    writer.write(first)
    try:
        while True:
            writer.write((more + pong) * 1000)
            await writer.drain()
            await asyncio.sleep(0.05)
    finally:
        writer.close()


async def pings(at: Target, number: int) -> None:
    """Empty pings without a pause."""
    del number
    _, writer = await at.raw_socket(NUMBERS)
    try:
        while True:
            writer.write((b"\x89\x80" + MASK) * 4000)
            await writer.drain()
    finally:
        writer.close()


async def openings(at: Target, number: int) -> None:
    """Another page of four lanes each second."""
    ask = BackMsg()
    seeds = ",".join(f"{10**6 * number + secrets.randbelow(10**6)}" for _ in range(4))
    ask.rerun_script.query_string = f"v=1&lanes=4&scheme=pre,post,peri,deepnorm&init_seed={seeds}"
    async with at.socket(STREAM) as page:
        await page.send(ask.SerializeToString())
        await asyncio.sleep(1)


async def caches(at: Target, number: int) -> None:
    """Streamlit's caches cleared, again and again."""
    del number
    async with at.socket(STREAM) as page:
        await page.send(rerun())
        while True:
            await page.send(BackMsg(clear_cache=True).SerializeToString())
            await asyncio.sleep(0.1)


async def links(at: Target, number: int) -> None:
    """A link of 60 kB."""
    del number
    ask = BackMsg()
    words = ",".join(secrets.token_hex(8) for _ in range(3_500))
    ask.rerun_script.query_string = f"v=1&scheme={words}"
    async with at.socket(STREAM) as page:
        await page.send(ask.SerializeToString())
        await finished(page)


async def nested(at: Target, number: int) -> None:
    """Charts of lists in lists."""
    del number
    async with at.socket(NUMBERS) as charts:
        await charts.send('{"runs": ' + "[" * 2000 + "]" * 2000 + ', "probe": "grad_block"}')
        await charts.recv()


async def pictures(at: Target, number: int) -> None:
    """Pictures of duels, one after another."""
    reader, writer = await at.open()
    try:
        for i in count():
            seed = 10**6 * number + i
            writer.write(
                f"GET /normviz/preview.png?v=1&scheme=pre,post&init_seed={seed} HTTP/1.1\r\n"
                f"Host: {at.host}\r\nX-Forwarded-For: {FROM}\r\n\r\n".encode()
            )
            await reader.readuntil(b"\r\n\r\n")
            await reader.read(65_536)
    finally:
        writer.close()


async def watchers(at: Target, number: int) -> None:
    """A socket of charts that reads what comes."""
    async with at.socket(NUMBERS) as charts:
        await charts.send(f'{{"runs": [{number + 1}], "probe": "grad_block"}}')
        while True:
            await charts.recv()


async def widgets(at: Target, number: int) -> None:
    """110,000 values in one message."""
    ask = BackMsg()
    for i in range(110_000):
        ask.rerun_script.widget_states.widgets.add(id=f"{i:x}", trigger_value=True)
    async with at.socket(STREAM) as page:
        await page.send(ask.SerializeToString())
        with suppress(TimeoutError):
            async with asyncio.timeout(3 + number % 5):
                while True:
                    await page.recv()


async def downloads(at: Target, number: int) -> None:
    """50 replays asked for at once."""
    del number
    async with at.socket(STREAM) as page:
        await page.send(rerun())
        ask = await replay(page)
        for n in range(50):
            ask.backend_operation_request.request_id = f"{n}"
            await page.send(ask.SerializeToString())
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                while True:
                    await page.recv()


async def values(at: Target, number: int) -> None:
    """A text of 3.7 MB in a page's box."""
    async with at.socket(STREAM) as page:
        await page.send(rerun("a" * 3_700_000))
        with suppress(TimeoutError):
            async with asyncio.timeout(3 + number % 5):
                while True:
                    await page.recv()


async def idle(at: Target, number: int) -> None:
    """A connection that sends nothing, or headers that do not end."""
    reader, writer = await at.open()
    if number % 2:
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\nX-A: " + b"a" * 50_000)
    await reader.read()
    writer.close()


async def requests(at: Target, number: int) -> None:
    """Pages or the health asked for without a pause."""
    reader, writer = await at.open()
    path = "healthz" if number % 2 else "?v=1"
    ask = f"GET /{path} HTTP/1.1\r\nHost: {at.host}\r\nX-Forwarded-For: {FROM}\r\n\r\n".encode()
    try:
        while True:
            writer.write(ask)
            await reader.readuntil(b"\r\n\r\n")
            await reader.read(65_536)
    finally:
        writer.close()


async def visits(at: Target, number: int) -> None:
    """A page that leaves as soon as it has rendered."""
    del number
    async with at.socket(STREAM) as page:
        await page.send(rerun())
        await finished(page)


async def topics(at: Target, number: int) -> None:
    """Charts of runs that do not exist."""
    async with at.socket(NUMBERS) as charts:
        for i in count():
            run = 10**9 + 10_000 * number + i % 10_000
            await charts.send(f'{{"runs": [{run}], "probe": "grad_block"}}')
            await asyncio.sleep(0.1)


async def renders(at: Target, number: int) -> None:
    """A page rendered again and again."""
    del number
    async with at.socket(STREAM) as page:
        while True:
            await page.send(rerun())
            await finished(page)


async def uploads(at: Target, number: int) -> None:
    """An upload that does not end."""
    reader, writer = await at.open()
    writer.write(
        f"GET /_stcore/health HTTP/1.1\r\nHost: {at.host}\r\nX-Forwarded-For: {FROM}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    head = (await reader.read()).decode()
    writer.close()
    cookie = next(
        line.partition(": ")[2].partition(";")[0]
        for line in head.split("\r\n")
        if "_streamlit_xsrf=" in line
    )
    async with at.socket(STREAM) as page:
        await page.send(rerun())
        data = await page.recv()
        assert isinstance(data, bytes)
        session = ForwardMsg.FromString(data).new_session.initialize.session_id
        reader, writer = await at.open()
        token = cookie.partition("=")[2]
        said = UPLOAD.format(page=session, n=number, host=at.host, cookie=cookie, token=token)
        writer.write(said.encode() + b"a" * 500_000)
        reading = asyncio.create_task(page.wait_closed())
        await reader.read()
        reading.cancel()
        writer.close()


ATTACKS: dict[str, tuple[Callable[[Target, int], Awaitable[None]], int]] = {
    "frames": (frames, 100),
    "fragments": (fragments, 40),
    "values": (values, 60),
    "idle": (idle, 1100),
    "requests": (requests, 290),
    "visits": (visits, 20),
    "topics": (topics, 500),
    "renders": (renders, 60),
    "uploads": (uploads, 40),
    "pings": (pings, 8),
    "widgets": (widgets, 3),
    "downloads": (downloads, 4),
    "openings": (openings, 12),
    "watchers": (watchers, 140),
    "pictures": (pictures, 40),
    "caches": (caches, 6),
    "links": (links, 12),
    "nested": (nested, 40),
}
"""What each client of an attack does again and again, and how many there are."""


async def again(do: Callable[[Target, int], Awaitable[None]], at: Target, number: int) -> None:
    """Do it until the task is cancelled."""
    while True:
        with suppress(OSError, EOFError, WebSocketException, StopIteration, RuntimeError):
            await do(at, number)
        await asyncio.sleep(RETRY_SECONDS)


async def attack(base: str, name: str) -> None:
    """Run an attack until standard input ends."""
    do, many = ATTACKS[name]
    tasks = [asyncio.create_task(again(do, Target(base), i)) for i in range(many)]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(attack(*sys.argv[1:]))
    os._exit(0)  # tasks that wait for a closing handshake need not end
