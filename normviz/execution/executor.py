"""The protocol of everything that runs tasks in other processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

STOP_SECONDS = 0.1
"""How long a stop may take to be noticed."""

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Began(Generic[T]):
    """A process took the task."""

    task: T


@dataclass(frozen=True)
class Ended(Generic[T]):
    """The task's end: what its function returned, or the `problem` if it returned nothing."""

    task: T
    result: Any = None
    problem: str | None = None


Event = Began[T] | Ended[T]


class TaskError(RuntimeError):
    """A task can't be done. Its function raises this; the sentence becomes the task's `problem`."""


def first_line(error: Exception) -> str:
    """What an error says, in one line; the name of its class where it says nothing."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def no_result(error: Exception) -> str:
    """The problem of a task that raised an unexpected error."""
    words = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
    return f"its process gave no result: {words}"


class Executor(ABC, Generic[T]):
    """Runs tasks in other processes. As a context manager it is closed at the end."""

    @abstractmethod
    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[T]]:
        """Yields events until every task has ended or `stop` returns True. To be read once."""

    @abstractmethod
    def close(self) -> list[Ended[T]]:
        """End every process; tasks in progress are lost. Returns results that `events` did not yield."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
