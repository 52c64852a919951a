"""A process that does one task after another, and the two ends of its pipe: `Child` here, `main` there.

It ends when the process that started it ends or closes the pipe, even by SIGKILL and in the middle of a task,
because nobody waits for the result any more.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Generic

from .executor import Ended, T, TaskError, no_result
from .process import describe_end

BEGAN = b""
"""The message that a task has arrived; every other message is its end."""
JOIN_SECONDS = 1.0
"""A process closes its pipe shortly before it has an exit code."""


class Child(Generic[T]):
    """A process, our end of its pipe, and the task that it has.

    niceness  its priority
    task      what it was given and has not ended; None while it waits for one
    began     that has arrived; if the process dies before, it has not touched it
    """

    def __init__(
        self, process: BaseProcess | subprocess.Popen[bytes], pipe: Connection, niceness: int = 0
    ) -> None:
        self.process, self.pipe, self.niceness = process, pipe, niceness
        self.task: T | None = None
        self.began = False

    def give(self, task: T, function: Callable[..., Any], *arguments: Any) -> bool:
        """Send it a task, a function of a module; False where it has died, as `read` will say."""
        self.task, self.began = task, False
        with suppress(OSError):
            self.pipe.send((function, arguments))
            return True
        return False

    def read(self) -> Ended[T] | None:
        """The end of its task, if that has come. Raises EOFError once it has died and all was read."""
        try:
            while self.task is not None and self.pipe.poll():
                if (message := self.pipe.recv_bytes()) != BEGAN:
                    task, self.task = self.task, None
                    return _ended(task, message)
                self.began = True
            if self.task is None and self.pipe.poll():  # nothing else is sent without a task
                raise EOFError
        except OSError as error:
            raise EOFError from error
        return None

    def kill(self) -> None:
        """End the process now, whatever it does."""
        self.process.kill()

    def describe_end(self) -> str:
        """How a process that has died ended: "was killed by signal 9" or "ended with exit code 1"."""
        if isinstance(self.process, subprocess.Popen):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(JOIN_SECONDS)
            return describe_end(self.process.returncode)
        self.process.join(JOIN_SECONDS)
        return describe_end(self.process.exitcode)


def _ended(task: T, message: bytes) -> Ended[T]:
    """The end of a task by a message, also where that can't be read."""
    try:
        return replace(pickle.loads(message), task=task)
    except Exception as error:  # unpickling may raise any
        return Ended(task, problem=no_result(error))


# In the child.


def main(pipe: Connection) -> None:
    """Do one task after another until the parent is gone."""
    tasks = SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    while True:
        task = tasks.get()
        with suppress(OSError):  # the parent is gone, and the other thread ends this process
            pipe.send_bytes(BEGAN)
            end = _do(task)
            _tidy_up()
            pipe.send_bytes(end)


def _receive(pipe: Connection, tasks: SimpleQueue[bytes]) -> None:
    try:
        while True:
            tasks.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(1)


def _do(task: bytes) -> bytes:
    """Do a task; its end, as bytes."""
    try:
        function, arguments = pickle.loads(task)
        return pickle.dumps(Ended(None, function(*arguments)))
    except TaskError as error:
        problem = str(error)
    except Exception as error:  # the next task may succeed
        traceback.print_exc()
        problem = no_result(error)
    return pickle.dumps(Ended(None, problem=problem))


def _tidy_up() -> None:
    """Return the memory of a model to the system."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # of the GNU C library alone
            ctypes.CDLL("libc.so.6").malloc_trim(0)
