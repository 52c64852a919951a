"""A lock that lets one page re-render at a time.

When a run ends, all browsers that watch it request a rerun. Threads of one interpreter share one lock,
so running them one after another takes no longer. A new visitor's page does not wait for the lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_SECONDS = 0.3
"""A page loses the lock after this time, so that a slow page does not block the others."""
_asked = threading.Condition()
_drawn: object = None
_until = 0.0
"""The page that holds the lock, and until when, on the monotonic clock."""


@contextmanager
def held(is_new: bool) -> Iterator[None]:
    """Hold the lock during a script run. A session's first run does not wait for it."""
    if is_new:
        yield
        return
    me = _await()
    try:
        yield
    finally:
        _give_back(me)


def _await() -> object:
    global _drawn, _until
    with _asked:
        while (left := _until - time.monotonic()) > 0:
            _asked.wait(left)
        _drawn, _until = object(), time.monotonic() + LONGEST_SECONDS
        return _drawn


def _give_back(me: object) -> None:
    global _drawn, _until
    with _asked:
        if _drawn is me:
            _drawn, _until = None, 0.0
            _asked.notify()
