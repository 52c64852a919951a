"""Settings of the interpreter and the C library for a server process with many threads."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

SWITCH_SECONDS = 0.0002
"""The interpreter's thread switch interval. A page sends hundreds of messages, and each waits for a
switch. At Python's default of 5 ms a new visitor would wait while the pages of a class re-render."""
ARENAS = 2
_ARENA_MAX = -8
"""M_ARENA_MAX of <malloc.h>. By default many threads get up to eight arenas a core, and an arena keeps
memory that was freed."""


def tune() -> None:
    """Call once, before threads start. Does nothing to memory with a C library other than glibc."""
    sys.setswitchinterval(SWITCH_SECONDS)
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").mallopt(_ARENA_MAX, ARENAS)
