"""What the server's process asks of the interpreter and of the C library, for its many threads."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

SWITCH_SECONDS = 0.0002
"""After so long a thread that draws a page lets another one go on. Each of a page's hundreds of messages
waits for that, which at Python's own 5 ms is what who comes waits for while a class's pages are drawn
anew."""
ARENAS = 2
_ARENA_MAX = -8
"""M_ARENA_MAX of <malloc.h>. A thread a visitor would get up to eight arenas a core, each of which
keeps what it once had."""


def tune() -> None:
    """Once, before there are threads. Where the C library is another one, its memory stays as it is."""
    sys.setswitchinterval(SWITCH_SECONDS)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").mallopt(_ARENA_MAX, ARENAS)
