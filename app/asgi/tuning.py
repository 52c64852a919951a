"""Settings of the interpreter, the C library and the operating system for a server process with many
threads and connections."""

from __future__ import annotations

import ctypes
import socket
import sys
from asyncio import BaseTransport
from contextlib import suppress
from functools import wraps
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

SWITCH_SECONDS = 0.0002
"""The interpreter's thread switch interval. A page sends hundreds of messages, and each waits for a
switch. At Python's default of 5 ms a new visitor would wait while the pages of a class re-render."""
ARENAS = 2
_ARENA_MAX = -8
"""M_ARENA_MAX of <malloc.h>. By default many threads get up to eight arenas a core, and an arena keeps
memory that was freed."""
FILES = 8192
"""File descriptors: a page takes up to ten, with its connections, the store's file and an event loop."""


def tune() -> None:
    """Call once, before threads start. Does nothing to memory with a C library other than glibc."""
    sys.setswitchinterval(SWITCH_SECONDS)
    raise_file_limit()
    send_at_once()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").mallopt(_ARENA_MAX, ARENAS)


def send_at_once() -> None:
    """Turn off Nagle's algorithm on each connection. asyncio does so where a socket names its protocol, and
    Streamlit's names none: what follows a header or a message would wait until the browser has confirmed it,
    which it delays by up to 40 ms. Call once, before the server starts."""
    own = AutoHTTPProtocol.connection_made

    @wraps(own)
    def connection_made(protocol: Any, transport: BaseTransport) -> None:
        with suppress(OSError):  # of one that its peer has left
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own(protocol, transport)

    setattr(AutoHTTPProtocol, own.__name__, connection_made)


def raise_file_limit() -> None:
    """Allow this process enough file descriptors, as far as it may. Says so where that changes the
    limit, or is not enough."""
    if resource is None:
        return
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before == resource.RLIM_INFINITY or before >= FILES:
        return
    now = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    sentence = f"normviz: the limit of open files is {now:,}, raised from {before:,}."
    if now < FILES:
        sentence += (
            f" A busy server needs {FILES:,}: raise the hard limit (ulimit -Hn) for more visitors."
        )
    print(sentence, file=sys.stderr, flush=True)


def trim() -> None:
    """Give freed memory back to the operating system, where the C library is glibc."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
