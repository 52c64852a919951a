"""Cells as tasks of a Ray cluster: what `Pool` is for the processes of this machine.

Ray decides which node trains a cell, keeps its processes warm, and runs a cell again whose process
or node was lost. Results come back here, where alone the store is written.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .. import texts
from ..characters import TextError
from ..config import RunConfig
from ..limits import MAX_CELLS
from ..runs import Recording, failed
from .cell import no_result
from .cluster import LEFT, Cluster, in_words
from .grid import Cell, SweepError
from .pool import Began, Ended
from .remote import RELEASE, normviz_cell

RETRIES = 3
"""So many nodes or processes may be lost under a cell before it counts as failed."""

LOOK = 2.0
"""Seconds between looks at a cluster that says nothing."""


class Tasks(threading.Thread):
    """Trains cells, in this order, with the texts of a data folder; `news` says what happens.

    A SweepError among the news is the last. `close` ends everything; cells in progress are lost.
    """

    def __init__(self, cluster: Cluster, cells: Sequence[Cell], folder: Path, early: bool) -> None:
        super().__init__(daemon=True)
        self.news: SimpleQueue[Began | Ended | SweepError] = SimpleQueue()
        self.cluster, self.folder, self.early = cluster, folder, early
        self._cells = iter(cells)
        self._ray = cluster.ray
        self._task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(normviz_cell)
        self._texts: dict[str, Any] = {}
        self._handed: dict[Any, Cell] = {}
        self._waiting: dict[Cell, None] = {}
        self._closed = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            while not self._closed.is_set():
                self._hand()
                if not self._handed:
                    return
                ended, _ = self._ray.wait(list(self._handed), timeout=LOOK)
                for task in ended:
                    self._end(task)
                if not ended:
                    self.cluster.check()
        except SweepError as error:
            self.news.put(error)
        except Exception as error:  # nobody would hear of it otherwise
            self.news.put(SweepError(f"Ray ended the sweep: {error}"))

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
        self.news.put(Began(cell))

    def _end(self, task: Any) -> None:
        cell = self._handed.pop(task)
        if cell in self._waiting:
            self._begin(cell)
        self.news.put(Ended(cell, self._result(task, cell.config)))

    def _result(self, task: Any, config: RunConfig) -> Recording:
        """Raises SweepError where no cell could be trained, since NormViz is not the same there."""
        try:
            return self._ray.get(task)
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
            return no_result(config, error)
        except self._ray.exceptions.RayError as error:
            lost = str(error).splitlines()[0]
            return failed(config, f"Ray gave it up after {RETRIES} retries: {lost}")

    def _text(self, key: str) -> Any:
        """A text, handed to the cluster once. Without it a node says that it is missing."""
        if key and key not in self._texts:
            try:
                self._texts[key] = self._ray.put(texts.read(key, self.folder))
            except TextError:
                return None
        return self._texts.get(key)

    def close(self) -> None:
        """Leave the cluster."""
        self._closed.set()
        self.join()
        self.cluster.close()
