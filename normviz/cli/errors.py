"""Errors of input on a terminal: one sentence on standard error, and exit code 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import typer

from ..home import FolderError, home
from ..runs.store import StoreError
from ..runs.store.machine_lock import MachineLock


def complain(sentence: object) -> NoReturn:
    """Print what is wrong and exit with code 2."""
    typer.echo(f"normviz: {sentence}", err=True)
    raise typer.Exit(2)


# The training lock for commands that train in their own process.


@contextmanager
def to_train(waiting: Callable[[], object]) -> Iterator[None]:
    """Hold the training lock; calls `waiting` if the norm cost lab holds it, then waits."""
    turn: MachineLock | None = None
    # A data folder that can't hold a lock can't be used for timing either.
    with suppress(StoreError, FolderError, OSError):
        turn = MachineLock(home())
        if not turn.take():
            waiting()
            turn.wait(float("inf"))
    try:
        yield
    finally:
        if turn is not None:
            turn.leave()
