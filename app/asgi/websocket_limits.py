"""What the WebSockets of a network address may hold and cost. A proxy does not see it: it passes frames on.

uvicorn has no limit on what all WebSockets together hold. What is received and not whole, or sent and not
read, counts for its network address and in all; the WebSocket that goes over is closed. So does the time
that the event loop takes to read it: a ping or a frame of a few bytes costs 10 µs. Requests that are slow,
large or too many are the proxy's (assets/deploy/nginx.conf).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from functools import wraps
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ..session import network_address

MESSAGE = 4_200_000
"""Bytes of a message, of which the largest is a page with a pasted text of a megabyte."""
FRAME = 100
"""Bytes that a frame takes beside its content until its message is whole: it may have no content."""
READ = 16_384
"""Bytes of one read, so that other connections take their turn after some 30 ms at most."""
BUSY_SHARE, BUSY_SECONDS = 0.1, 0.5
"""Of the event loop's time one network address may take this share for its reads, and so many seconds of
CPU time beyond it at once; a page with its scripts takes a few milliseconds."""
EACH, IN_ALL = 16_000_000, 48_000_000
"""Bytes that are not whole or not read: of one network address, and of all together."""
PENALTY_SECONDS, PENALTY_EACH = 10.0, 1_000_000
"""An address that went over its limit may hold only so much for this time, and open no WebSocket, so that
it does not fill the server again and again."""
SWEEP_SECONDS = 1.0


class Socket:
    """What is known of an open WebSocket; `protocol` is uvicorn's."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self.bytes = 0
        self.address = ""

    def update(self) -> None:
        """Count how many bytes it holds, for its address and in all."""
        protocol = self.protocol
        held = protocol.transport.get_write_buffer_size() + _unfinished(protocol)
        address = network_address.of_request(
            getattr(protocol, "scope", None) or {"client": protocol.client}
        )
        _charge(self.address, -self.bytes)
        _charge(address, held)
        self.bytes, self.address = held, address


_open: dict[Any, Socket] = {}
"""By uvicorn's protocol."""
_held = Counter[str]()
_busy: dict[str, tuple[float, float]] = {}
"""Seconds of the event loop that an address has taken beyond its share, and when that was, on the monotonic
clock."""
_penalties: dict[str, float] = {}
"""Until when an address has a lower limit, on the monotonic clock."""
_sweeping: asyncio.Task[None] | None = None


def install() -> None:
    """Put the limits on uvicorn's WebSockets. Call once, before the server starts."""
    for name, after in (
        ("connection_made", _made), ("data_received", _received), ("connection_lost", _lost)
    ):  # fmt: skip
        _follow(name, after)


def is_penalised(address: str) -> bool:
    """Whether an address went over its limit a moment ago."""
    return _penalties.get(address, 0.0) > time.monotonic()


def _follow(name: str, after: Any) -> None:
    """Call `after` whenever asyncio has called this method of a protocol."""
    own = getattr(WebSocketsSansIOProtocol, name)

    @wraps(own)
    def both(protocol: Any, *given: Any) -> None:
        began = time.thread_time()
        own(protocol, *given)
        after(protocol)
        _take(protocol, time.thread_time() - began)

    setattr(WebSocketsSansIOProtocol, name, both)


def _take(protocol: Any, seconds: float) -> None:
    """Count time of the event loop for a WebSocket's address, and close it where that is too much."""
    if (socket := _open.get(protocol)) is None:
        return
    now, address = time.monotonic(), socket.address
    taken, since = _busy.get(address, (0.0, now))
    taken = max(0.0, taken - BUSY_SHARE * (now - since)) + seconds
    _busy[address] = taken, now
    if taken > BUSY_SECONDS:
        _penalties[address] = now + PENALTY_SECONDS
        _close(socket)


def _made(protocol: Any) -> None:
    global _sweeping
    transport = protocol.transport
    if hasattr(transport, "max_size"):  # uvloop's has no such limit: it reads 256 kB at most
        transport.max_size = READ
    _open[protocol] = Socket(protocol)
    if _sweeping is None or _sweeping.done():
        _sweeping = asyncio.get_running_loop().create_task(_sweep())


def _received(protocol: Any) -> None:
    if (socket := _open.get(protocol)) is None:
        return
    socket.update()
    if _unfinished(protocol) > MESSAGE:
        _close(socket)
    _relieve(socket.address)


def _relieve(address: str) -> None:
    """Close the WebSockets that hold the most while their address, or all, hold more than they may."""
    while (most := _largest_above(address)) is not None:
        _penalties[most.address] = time.monotonic() + PENALTY_SECONDS
        _close(most)


def _lost(protocol: Any) -> None:
    _forget(protocol)
    protocol.conn.reader.buffer.clear()  # else they wait for a garbage collection
    protocol.frames.clear()


def _forget(protocol: Any) -> None:
    if (socket := _open.pop(protocol, None)) is not None:
        _charge(socket.address, -socket.bytes)


def _charge(address: str, held: int) -> None:
    _held[address] += held
    if not _held[address]:
        del _held[address]


def _close(socket: Socket) -> None:
    _forget(socket.protocol)
    socket.protocol.transport.abort()


def _unfinished(protocol: Any) -> int:
    """Bytes that a message takes that is not whole."""
    frames = protocol.frames
    return len(protocol.conn.reader.buffer) + sum(map(len, frames)) + FRAME * len(frames)


def _largest_above(address: str) -> Socket | None:
    """The WebSocket that holds the most, if its address or all together hold more than they may."""
    if _held.total() > IN_ALL:
        some = [*_open.values()]
    elif _held[address] > (PENALTY_EACH if is_penalised(address) else EACH):
        some = [socket for socket in _open.values() if socket.address == address]
    else:
        return None
    return max(some, key=lambda socket: socket.bytes, default=None)


async def _sweep() -> None:
    """Close the WebSockets whose peers do not read what was sent, and forget what is over."""
    while _open:
        await asyncio.sleep(SWEEP_SECONDS)
        now = time.monotonic()
        for socket in [*_open.values()]:
            with suppress(Exception):  # one WebSocket must not end the sweep
                socket.update()
        for address in [*_held]:
            _relieve(address)
        for address in [address for address, until in _penalties.items() if until < now]:
            del _penalties[address]
        for address, (taken, since) in [*_busy.items()]:
            if taken < BUSY_SHARE * (now - since):
                del _busy[address]
