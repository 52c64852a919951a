"""Tasks in child processes of this one.

A child is started for the first task, has PyTorch loaded for the next one, and is killed when no task is
left. One thread, the reader of `events`, holds all of them.
"""

from __future__ import annotations

import subprocess
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any

from .child import Child
from .executor import STOP_SECONDS, Began, Ended, Event, Executor, T, no_result
from .process import PATIENT, start


class Local(Executor[T]):
    """Up to `processes` children, each of which takes one task after another, in order.

    function  what each task calls in a child: one of a module's
    tasks     its arguments by task
    folder    the data folder
    tries     how often a task is begun whose process dies, 1 or 2
    urgent    a visitor waits for it: it is free to use all cores, at full priority
    environments  variables that a child has alone, where given for each of the `processes`
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tasks: Mapping[T, tuple[Any, ...]],
        folder: Path,
        processes: int = 1,
        tries: int = 1,
        urgent: bool = False,
        environments: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self.function, self.tasks, self.folder = function, tasks, folder
        self.processes, self.tries, self.urgent = processes, tries, urgent
        self._waiting, self._tries = deque(tasks), Counter[T]()
        self._children: list[Child[T]] = []
        self._environments = list(environments)
        self._taken = dict[Child[T], Mapping[str, str]]()

    @property
    def pids(self) -> list[int]:
        """The children's process ids."""
        return [child.process.pid for child in self._children if child.process.pid]

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[T]]:
        while not stop():
            while self._waiting and len(self._busy()) < self.processes:
                yield from self._give(self._waiting.popleft())
            if not self._busy():
                return
            ready = wait([child.pipe for child in self._children], STOP_SECONDS)
            for child in [child for child in self._children if child.pipe in ready]:
                if (ended := self._read(child)) is not None:
                    yield ended
                if not self._waiting and child in self._children and child.task is None:
                    self._end(child)

    def close(self) -> list[Ended[T]]:
        for child in self._children:
            child.kill()
        return [ended for child in list(self._children) if (ended := self._end(child))]

    def _busy(self) -> list[Child[T]]:
        return [child for child in self._children if child.task is not None]

    def _give(self, task: T) -> Iterator[Event[T]]:
        """Give a child that waits, or a new one, a task; it ends at once where none can be started."""
        self._tries[task] += 1
        problem = None
        try:
            idle = (child for child in self._children if child.task is None)
            child = next(idle, None) or self._start()
            child.give(task, self.function, *self.tasks[task])
        except OSError as error:
            problem = no_result(error)
        if self._tries[task] == 1:
            yield Began(task)
        if problem is not None:
            yield Ended(task, problem=problem)

    def _start(self) -> Child[T]:
        ours, theirs = Pipe()
        niceness, threads = (0, {}) if self.urgent else (PATIENT, {"OMP_NUM_THREADS": "1"})
        taken = self._taken.values()
        own = next((variables for variables in self._environments if variables not in taken), {})
        with theirs:
            process = start(
                "normviz.execution", self.folder, str(theirs.fileno()), str(niceness),
                stdin=subprocess.DEVNULL, stdout=2, pipes=[theirs.fileno()], **threads, **own,
            )  # fmt: skip
        self._children.append(child := Child[T](process, ours, niceness))
        self._taken[child] = own
        return child

    def _read(self, child: Child[T]) -> Ended[T] | None:
        """The end of a child's task, if it has come; where it died, unless the task is begun again."""
        try:
            return child.read()
        except EOFError:
            how, task = child.describe_end(), child.task
            self._end(child)
            if task is None:
                return None
            if self._tries[task] < self.tries:
                self._waiting.appendleft(task)
                return None
            times = ", twice" if self._tries[task] > 1 else ""
            return Ended(task, problem=f"its process {how}{times}")

    def _end(self, child: Child[T]) -> Ended[T] | None:
        """Kill a child. Returns the end of its task where it had sent that."""
        assert isinstance(child.process, subprocess.Popen)
        self._children.remove(child)
        del self._taken[child]
        child.kill()
        child.process.wait()
        with child.pipe, suppress(EOFError):
            return child.read()
        return None
