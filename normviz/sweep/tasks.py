"""Cells as tasks of a Ray cluster: the executor that `Local` is for the processes of this machine.

Ray decides which node trains a cell, keeps its processes warm, and runs a cell again whose process
or node was lost. Results come back here, where alone the store is written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from .. import texts
from ..characters import TextError
from ..execution import Began, Ended, Event, Executor, no_result
from ..execution.executor import STOP_SECONDS
from ..limits import MAX_CELLS
from .cluster import LEFT, Cluster, in_words
from .grid import Cell, SweepError
from .remote import RELEASE, normviz_cell

RETRIES = 3
"""So many nodes or processes may be lost under a cell before it counts as failed."""

LOOK = 2.0
"""Seconds between looks at a cluster that says nothing."""


class Tasks(Executor[Cell]):
    """Trains cells, in this order, with the texts of a data folder.

    `events` raises SweepError when the cluster is lost, or can't run NormViz. A thread asks Ray, so
    that Ctrl-C never interrupts it there.
    """

    def __init__(self, cluster: Cluster, cells: Sequence[Cell], folder: Path, early: bool) -> None:
        self._news: SimpleQueue[Event[Cell] | SweepError | None] = SimpleQueue()
        self.cluster, self.folder, self.early = cluster, folder, early
        self._cells = iter(cells)
        self._ray = cluster.ray
        self._task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(normviz_cell)
        self._texts: dict[str, Any] = {}
        self._handed: dict[Any, Cell] = {}
        self._waiting: dict[Cell, None] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[Cell]]:
        while not stop():
            with suppress(Empty):
                event = self._news.get(timeout=STOP_SECONDS)
                if isinstance(event, SweepError):
                    raise event
                if event is None:
                    return
                yield event

    def close(self) -> list[Ended[Cell]]:
        """Leave the cluster."""
        self._closed.set()
        self._thread.join()
        self.cluster.close()
        left = [self._news.get() for _ in range(self._news.qsize())]
        return [event for event in left if isinstance(event, Ended)]

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                self._hand()
                if not self._handed:
                    self._news.put(None)
                    return
                ended, _ = self._ray.wait(list(self._handed), timeout=LOOK)
                for task in ended:
                    self._end(task)
                if not ended:
                    self.cluster.check()
        except SweepError as error:
            self._news.put(error)
        except Exception as error:  # nobody would hear of it otherwise
            self._news.put(SweepError(f"Ray ended the sweep: {error}"))

    def _hand(self) -> None:
        """Give Ray all that it may have, and say that as many cells train as there are cores.

        All and not just these, so that a cluster that grows by demand sees it.
        """
        room = (self.cluster.at_most or MAX_CELLS) - len(self._handed)
        for cell in islice(self._cells, room):
            job = (RELEASE, cell.config.canonical(), self.early, self._text(cell.config.text))
            self._handed[self._task.remote(*job)] = cell
            self._waiting[cell] = None
        training = len(self._handed) - len(self._waiting)
        for cell in list(islice(self._waiting, max(0, self.cluster.cores - training))):
            self._begin(cell)

    def _begin(self, cell: Cell) -> None:
        del self._waiting[cell]
        self._news.put(Began(cell))

    def _end(self, task: Any) -> None:
        cell = self._handed.pop(task)
        if cell in self._waiting:
            self._begin(cell)
        self._news.put(self._ended(cell, task))

    def _ended(self, cell: Cell, task: Any) -> Ended[Cell]:
        """Raises SweepError where no cell could be trained, since NormViz is not the same there."""
        try:
            return Ended(cell, self._ray.get(task))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, SweepError):
                raise error.cause from None
            raise SweepError(
                f"a node of the cluster can't run NormViz {RELEASE[0]} "
                f"({in_words(error.cause)}): install the same release on every node"
            ) from None
        except self._ray.exceptions.LocalRayletDiedError:
            raise self.cluster.lost(LEFT) from None
        except self._ray.exceptions.RaySystemError as error:  # also where the answer can't be read
            return Ended(cell, problem=no_result(error))
        except self._ray.exceptions.RayError as error:
            lost = str(error).splitlines()[0]
            return Ended(cell, problem=f"Ray gave it up after {RETRIES} retries: {lost}")

    def _text(self, key: str) -> Any:
        """A text, handed to the cluster once. Without it a node says that it is missing."""
        if key and key not in self._texts:
            try:
                self._texts[key] = self._ray.put(texts.read(key, self.folder))
            except TextError:
                return None
        return self._texts.get(key)
