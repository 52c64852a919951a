"""How many pages are drawn anew at once. When a run ends, everybody who watches it asks for the page
again: one after another they get it as soon, and who comes meanwhile does not wait behind them all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 2
PATIENCE_SECONDS = 10.0
"""Then a page is drawn all the same."""
_turns = threading.Semaphore(AT_ONCE)


@contextmanager
def turn(is_new: bool) -> Iterator[None]:
    """Draw a page: at once where its visitor has just come, else after those who asked before."""
    held = not is_new and _turns.acquire(timeout=PATIENCE_SECONDS)
    try:
        yield
    finally:
        if held:
            _turns.release()
