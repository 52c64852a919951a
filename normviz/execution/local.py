"""Tasks in child processes of this one.

A child is started for the first task, has PyTorch loaded for the next one, and is killed when no task is
left. One thread, the reader of `events`, holds all of them.
"""

from __future__ import annotations

import pickle
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any, Generic

from .executor import STOP_SECONDS, Began, Ended, Event, Executor, T, no_result
from .process import PATIENT, describe_end, start


class Local(Executor[T]):
    """Up to `processes` children, each of which takes one task after another, in order.

    function  what each task calls in a child: one of a module's
    tasks     its arguments by task
    folder    the data folder
    tries     how often a task is begun whose process dies, 1 or 2
    urgent    a visitor waits for it: it is free to use all cores, at full priority
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tasks: Mapping[T, tuple[Any, ...]],
        folder: Path,
        processes: int = 1,
        tries: int = 1,
        urgent: bool = False,
    ) -> None:
        self.function, self.tasks, self.folder = function, tasks, folder
        self.processes, self.tries, self.urgent = processes, tries, urgent
        self._left = iter(tasks)
        self._busy: dict[Any, _Child[T]] = {}
        self._news = deque[Event[T]]()

    @property
    def pids(self) -> list[int]:
        """The children's process ids."""
        return [child.process.pid for child in self._busy.values()]

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[T]]:
        for _ in range(self.processes):
            self._next(None)
        yield from self._unread()
        while self._busy and not stop():
            for pipe in wait(list(self._busy), STOP_SECONDS):
                self._receive(self._busy[pipe])
                yield from self._unread()

    def close(self) -> list[Ended[T]]:
        children = list(self._busy.values())
        self._busy.clear()
        for child in children:
            child.process.kill()
        for child in children:
            self._news += child.end()
        return [event for event in self._unread() if isinstance(event, Ended)]

    def _unread(self) -> Iterator[Event[T]]:
        while self._news:
            yield self._news.popleft()

    def _next(self, child: _Child[T] | None) -> None:
        """Give a child, or a new one, the next task; without one it ends."""
        for task in self._left:
            self._news.append(Began(task))
            if self._give(child, task, 1):
                return
        if child is not None:
            del self._busy[child.pipe]
            child.end()

    def _give(self, child: _Child[T] | None, task: T, tries: int) -> bool:
        """Give a child, or a new one, a task; it ends at once where none can be started."""
        try:
            child = child or _Child(self.folder, self.urgent)
        except OSError as error:
            self._news.append(Ended(task, problem=no_result(error)))
            return False
        child.task, child.tries = task, tries
        self._busy[child.pipe] = child
        with suppress(BrokenPipeError, ConnectionResetError):  # it died, as `_receive` will find
            child.pipe.send((self.function, self.tasks[task]))
        return True

    def _receive(self, child: _Child[T]) -> None:
        """Receive the next message of a child, or notice that it died."""
        try:
            message = child.pipe.recv_bytes()
        except (EOFError, OSError):
            self._retry_or_end(child)
            return
        self._news.append(child.end_of(message))
        self._next(child)

    def _retry_or_end(self, child: _Child[T]) -> None:
        """Begin a dead child's task again where that is allowed, else end it."""
        del self._busy[child.pipe]
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(1.0)
        child.end()
        if child.tries < self.tries:
            if not self._give(None, child.task, child.tries + 1):
                self._next(None)
            return
        times = ", twice" if child.tries > 1 else ""
        how = f"its process {describe_end(child.process.returncode)}{times}"
        self._news.append(Ended(child.task, problem=how))
        self._next(None)


class _Child(Generic[T]):
    """A process, our end of its pipe, and the task that it has."""

    task: T
    tries: int

    def __init__(self, folder: Path, urgent: bool) -> None:
        self.pipe, theirs = Pipe()
        with theirs:
            self.process = start(
                "normviz.execution", folder, str(theirs.fileno()), "0" if urgent else str(PATIENT),
                stdin=subprocess.DEVNULL, stdout=2, pipes=[theirs.fileno()],
                **({} if urgent else {"OMP_NUM_THREADS": "1"}),
            )  # fmt: skip

    def end_of(self, message: bytes) -> Ended[T]:
        """The end of its task by a message, also where that can't be read."""
        try:
            return replace(pickle.loads(message), task=self.task)
        except Exception as error:  # unpickling may raise any
            return Ended(self.task, problem=no_result(error))

    def end(self) -> list[Ended[T]]:
        """Kill it. Returns the end of its task where it had sent that."""
        self.process.kill()
        self.process.wait()
        ends = list[Ended[T]]()
        with self.pipe, suppress(EOFError, OSError):
            while self.pipe.poll():
                ends.append(self.end_of(self.pipe.recv_bytes()))
        return ends
