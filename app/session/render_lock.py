"""One page at a time is drawn anew. When a run ends, everybody who watches it asks for the page again:
one after another they all have it as soon as side by side, since threads of one interpreter take
turns anyway; and who comes meanwhile does not wait behind them all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_SECONDS = 0.3
"""After so long the next page is begun beside one that still takes its time."""
_asked = threading.Condition()
_drawn: object = None
_until = 0.0
"""The page that has the turn, and the time until when."""


@contextmanager
def turn(is_new: bool) -> Iterator[None]:
    """Draw a page: at once where its visitor has just come, else after those who asked before."""
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
