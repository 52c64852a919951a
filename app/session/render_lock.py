"""A lock that lets one page re-render at a time, first come, first served.

When a run ends, all browsers that watch it request a rerun. Threads of one interpreter share one lock,
so running them one after another takes no longer. A new visitor's page does not wait for the lock.

A visitor has one place among those that wait, and so has a network address, however many pages each of
them has. Otherwise one browser with many pages would keep all others waiting.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_SECONDS = 0.3
"""A page loses the lock after this time, so that a slow page does not block the others."""
_lock = threading.Lock()
_waiting: dict[str, dict[str, deque[Ticket]]] = {}
"""The tickets of each visitor of each address, in the order in which they get the lock."""
_holder: Ticket | None = None
_until = 0.0
"""The page that holds the lock, and until when, on the monotonic clock."""


class Ticket(threading.Event):
    """A page that waits for the lock, and then holds it: the event is set when the lock is its own."""


@contextmanager
def held(is_new: bool, visitor: str = "", address: str = "") -> Iterator[None]:
    """Hold the lock during a script run. A session's first run does not wait for it."""
    if is_new:
        yield
        return
    mine = Ticket()
    with _lock:
        _waiting.setdefault(address, {}).setdefault(visitor, deque()).append(mine)
        _pass_on()
    while not mine.wait(max(0.001, _until - time.monotonic())):
        with _lock:
            _pass_on()
    try:
        yield
    finally:
        _give_back(mine)


def _pass_on() -> None:
    """Give the lock to the next page, if it is free or was held too long. Call with `_lock`."""
    global _holder, _until
    if _waiting and (_holder is None or time.monotonic() >= _until):
        _holder, _until = _next(), time.monotonic() + LONGEST_SECONDS
        _holder.set()


def _next() -> Ticket:
    """Take out the first ticket of the first visitor of the first address. Visitor and address go to the
    end of their order."""
    address = next(iter(_waiting))
    visitors = _waiting.pop(address)
    visitor = next(iter(visitors))
    tickets = visitors.pop(visitor)
    ticket = tickets.popleft()
    if tickets:
        visitors[visitor] = tickets
    if visitors:
        _waiting[address] = visitors
    return ticket


def _give_back(mine: Ticket) -> None:
    global _holder
    with _lock:
        if _holder is mine:
            _holder = None
            _pass_on()
