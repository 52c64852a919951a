"""Limits on connections before a request or a message is whole, where no middleware sees them.

uvicorn has no time limit for a request's headers, none for a message's frames, and no limit on what all
connections together hold. A sweep closes connections that take too long. What is received and not whole,
or sent and not read, counts for its network address and in all; the connection that goes over is closed.
So does the time that the event loop takes to read it: a ping or a frame of a few bytes costs 10 µs.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from functools import wraps
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ..session import network_address

CONNECTIONS = 1500
"""Open connections. Above it, the one that has waited longest without a request is closed."""
REQUEST_SECONDS = 10.0
"""From the opening of a connection, or the end of an answer, until the next request is whole."""
ANSWER_SECONDS = 120.0
"""From a request until its answer is read: a slow phone loads Streamlit's largest script in that time."""
CLOSING_SECONDS = 60.0
"""From the closing of a connection until its peer has read the rest."""
MESSAGE_SECONDS = 30.0
"""From the first byte of a message until it is whole."""
MESSAGE = 4_200_000
"""Bytes of a message, of which the largest is a page with a pasted text of a megabyte."""
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


class Connection:
    """What is known of an open connection; `protocol` is uvicorn's, and changes with an upgrade."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self.since = time.monotonic()
        """When the present wait began: for a request, for an answer to be read, or for a message."""
        self.state: object = None
        self.bytes = 0
        self.address = ""

    @property
    def waits_for_request(self) -> bool:
        """Whether no request is being answered."""
        return not _is_socket(self.protocol) and (
            (cycle := self.protocol.cycle) is None or cycle.response_complete
        )

    def longest(self) -> float:
        """Seconds that the present wait may last; infinite where nothing is waited for."""
        transport = self.protocol.transport
        if transport.is_closing():
            return CLOSING_SECONDS
        if _is_socket(self.protocol):
            return MESSAGE_SECONDS if _unfinished(self.protocol) else float("inf")
        if self.waits_for_request and not transport.get_write_buffer_size():
            return REQUEST_SECONDS
        return ANSWER_SECONDS

    def update(self, now: float) -> None:
        """Note whether another wait has begun, and how many bytes the connection holds."""
        protocol = self.protocol
        is_socket = _is_socket(protocol)
        state = (self.longest(), None if is_socket else protocol.cycle)
        if state != self.state:
            self.state, self.since = state, now
        held = protocol.transport.get_write_buffer_size()
        if is_socket:
            held += _unfinished(protocol)
        address = network_address.of_request(
            getattr(protocol, "scope", None) or {"client": protocol.client}
        )
        _charge(self.address, -self.bytes)
        _charge(address, held)
        self.bytes, self.address = held, address


_open: dict[Any, Connection] = {}
"""By asyncio's transport."""
_held = Counter[str]()
_busy: dict[str, tuple[float, float]] = {}
"""Seconds of the event loop that an address has taken beyond its share, and when that was, on the monotonic
clock."""
_penalties: dict[str, float] = {}
"""Until when an address has a lower limit, on the monotonic clock."""
_sweeping: asyncio.Task[None] | None = None


def install() -> None:
    """Put the limits on uvicorn's connections. Call once, before the server starts."""
    for kind in (AutoHTTPProtocol, WebSocketsSansIOProtocol):
        for name, after in (("connection_made", _made), ("data_received", _received)):
            _follow(kind, name, after)
        _follow(kind, "connection_lost", _lost)


def is_penalised(address: str) -> bool:
    """Whether an address went over its limit a moment ago."""
    return address in _penalties


def _follow(kind: type, name: str, after: Any) -> None:
    """Call `after` whenever asyncio has called this method of a protocol."""
    own = getattr(kind, name)

    @wraps(own)
    def both(protocol: Any, *given: Any) -> None:
        began = time.thread_time()
        own(protocol, *given)
        after(protocol)
        _take(protocol.transport, time.thread_time() - began)

    setattr(kind, name, both)


def _take(transport: Any, seconds: float) -> None:
    """Count time of the event loop for the address of a WebSocket, and close it where that is too much."""
    connection = _open.get(transport)
    if connection is None or not _is_socket(connection.protocol):
        return
    now, address = time.monotonic(), connection.address
    taken, since = _busy.get(address, (0.0, now))
    taken = max(0.0, taken - BUSY_SHARE * (now - since)) + seconds
    _busy[address] = taken, now
    if taken > BUSY_SECONDS:
        _penalties[address] = now + PENALTY_SECONDS
        _close(connection)


def _made(protocol: Any) -> None:
    global _sweeping
    transport = protocol.transport
    if transport in _open:  # it becomes a WebSocket
        _open[transport].protocol = protocol
        return
    transport.max_size = READ
    _open[transport] = Connection(protocol)
    if _sweeping is None or _sweeping.done():
        _sweeping = asyncio.get_running_loop().create_task(_sweep())
    if len(_open) > CONNECTIONS:
        idle = (connection for connection in _open.values() if connection.waits_for_request)
        _close(next(idle, _open[transport]))


def _received(protocol: Any) -> None:
    connection = _open.get(protocol.transport)
    if connection is None or not _is_socket(connection.protocol):
        return
    connection.update(time.monotonic())
    if _unfinished(connection.protocol) > MESSAGE:
        _close(connection)
    _relieve(connection.address)


def _relieve(address: str) -> None:
    """Close the connections that hold the most while their address, or all, hold more than they may."""
    while (most := _largest_above(address)) is not None:
        _penalties[most.address] = time.monotonic() + PENALTY_SECONDS
        _close(most)


def _lost(protocol: Any) -> None:
    _forget(protocol.transport)
    if _is_socket(protocol):  # else they wait for a garbage collection
        protocol.conn.reader.buffer.clear()
        protocol.frames.clear()


def _forget(transport: Any) -> None:
    if (connection := _open.pop(transport, None)) is not None:
        _charge(connection.address, -connection.bytes)


def _charge(address: str, held: int) -> None:
    _held[address] += held
    if not _held[address]:
        del _held[address]


def _close(connection: Connection) -> None:
    transport = connection.protocol.transport
    _forget(transport)
    transport.abort()


def _is_socket(protocol: Any) -> bool:
    return isinstance(protocol, WebSocketsSansIOProtocol)


def _unfinished(protocol: Any) -> int:
    """Bytes of a message that is not whole."""
    return len(protocol.conn.reader.buffer) + sum(len(frame) + 1 for frame in protocol.frames)


def _largest_above(address: str) -> Connection | None:
    """The connection that holds the most, if its address or all together hold more than they may."""
    if _held.total() > IN_ALL:
        some = [*_open.values()]
    elif _held[address] > (PENALTY_EACH if address in _penalties else EACH):
        some = [connection for connection in _open.values() if connection.address == address]
    else:
        return None
    return max(some, key=lambda connection: connection.bytes, default=None)


async def _sweep() -> None:
    """Close the connections whose time is over, or whose peers do not read what was sent."""
    while _open:
        await asyncio.sleep(SWEEP_SECONDS)
        now = time.monotonic()
        for connection in [*_open.values()]:
            with suppress(Exception):  # one connection must not end the sweep
                connection.update(now)
        for connection in [*_open.values()]:
            if now - connection.since > connection.longest():
                _close(connection)
        for address in [*_held]:
            _relieve(address)
        for address in [address for address, until in _penalties.items() if until < now]:
            del _penalties[address]
        for address, (taken, since) in [*_busy.items()]:
            if taken < BUSY_SHARE * (now - since):
                del _busy[address]
