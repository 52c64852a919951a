"""The training lock for commands that train in their own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ..home import FolderError, home
from ..store import StoreError
from ..store.machine_lock import Turn


@contextmanager
def to_train(waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the training lock; calls `waiting` if the norm cost lab holds it, then waits."""
    turn: Turn | None = None
    # A data folder that can't hold a lock can't be used for timing either.
    with suppress(StoreError, FolderError, OSError):
        turn = Turn(home())
        if not turn.take():
            waiting()
            turn.wait(float("inf"))
    try:
        yield
    finally:
        if turn is not None:
            turn.leave()
