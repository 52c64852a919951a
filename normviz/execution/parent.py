"""A child's end of the pipe to the process that started it."""

from __future__ import annotations

import os
import pickle
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any


class Parent:
    """The process that started this one. When it ends or closes the pipe, this process exits at once, also
    in the middle of a task, because nobody waits for the result any more."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._received = pipe, SimpleQueue[bytes]()
        threading.Thread(target=self._listen, daemon=True).start()

    def receive(self) -> Any:
        """The next object that it sent. Raises whatever unpickling does."""
        return pickle.loads(self._received.get())

    def send(self, message: object) -> None:
        """Send an object. Raises where it can't be pickled."""
        with suppress(OSError):  # the parent is gone, and the listener ends this process
            self._pipe.send(message)

    def _listen(self) -> None:
        try:
            while True:
                self._received.put(self._pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)
