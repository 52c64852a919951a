"""Trains the cells of a sweep as tasks of a Ray cluster, which runs a cell again whose process or node was
lost. The store is written here alone. Ray is an extra that only `Cluster` imports."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ... import __version__
from ...config import ENGINE
from ...cores import cores
from ...execution import Began, Ended, Event, Executor, no_result
from ...execution.cell import train_cell
from ...limits import MAX_CELLS
from ...model import texts
from ...model.characters import TextError
from ...runs import Recording
from ...runs.store import Store, StoreError
from .grid import Cell, SweepError

RELEASE = f"NormViz {__version__} (engine {ENGINE})"
RETRIES, GPU_SHARE = 3, 1 / 8
"""Nodes or processes lost under a cell before it has failed; of a node's GPU for one with device=cuda."""
LOOK, PATIENCE = 1.0, 20.0
"""Seconds between looks at a silent cluster, and without a node that could train until it is lost."""
START = "`ray start --head` starts one, `ray start --address HOST:PORT` joins it elsewhere"


def read_address(word: str) -> str | None:
    """What `--on` names, as the address of a `Cluster`; None for this machine. Raises SweepError."""
    if word in ("local", "ray"):
        return None if word == "local" else "local"
    if re.fullmatch(r"ray:(auto|[^\s:/]+:\d{1,5})", word):
        return word.removeprefix("ray:")
    raise SweepError(
        f"--on is {word!r}, allowed is local (this machine), ray (a Ray started here for this sweep), "
        "ray:auto (the cluster that runs here) or ray:HOST:PORT (one that this machine has joined)"
    )


class Cluster:
    """A connection to Ray for one sweep: "local" starts a Ray that ends with it, "auto" takes the one that
    runs here, HOST:PORT one that this machine has joined. Up to `at_most` cells train at once, by default
    as many as there are cores. Raises SweepError where there is none."""

    def __init__(self, address: str, at_most: int | None = None) -> None:
        words: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":  # for kilobytes Ray would take a third of the memory
            words |= {"num_cpus": at_most or cores(), "object_store_memory": 100 * 2**20}
        self.at_most, self.seen = at_most, time.monotonic()
        try:
            if ":" in address:
                os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "1")  # else it tries for minutes
                _greet(address)
            self.ray = import_module("ray")
            self.ray.init(address, **words)
            self.gcs = self.ray.get_runtime_context().gcs_address
        except ImportError:
            how = "`pip install -r requirements.txt -e '.[cluster]'` adds it"
            raise SweepError(f"--on ray needs Ray, which is not installed here: {how}") from None
        except Exception as error:  # Ray raises Exception itself, and much else
            why = " ".join(str(error).split())
            raise SweepError(f"no Ray cluster answers at {address} ({why}): {START}") from None
        self.check()

    def check(self) -> None:
        """Count its `cores`. Raises SweepError when there have been none for long."""
        n, now = 0, time.monotonic()
        with suppress(Exception):
            _greet(self.gcs)  # where nobody answers, Ray would wait for long, or end this process
            n = int(self.ray.cluster_resources().get("CPU", 0))
        self.cores, self.seen = min(n, self.at_most or n), now if n else self.seen
        if now - self.seen > PATIENCE:
            raise self.lost()

    def lost(self) -> SweepError:
        """The sentence of a cluster that will not train what is left."""
        lost = f"the Ray cluster at {self.gcs} has no node that can train, or none on this machine"
        return SweepError(f"{lost}: {START}; the same command then runs what is not stored yet")


def _greet(address: str) -> None:
    """Raises OSError or OverflowError where nobody answers at HOST:PORT."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()


def normviz_cell(release: str, canonical: str, text: str | None) -> Recording:
    """Train a cell on a node, which keeps its text from now on. Raises SweepError where the node's NormViz
    is not the `release` that asks, and TextError or StoreError where it can't keep the text."""
    if release != RELEASE:
        raise SweepError(f"{socket.gethostname()} has {RELEASE}")
    if text is not None:
        texts.add(text, needed=lambda: Store().needed_texts())
    return train_cell(canonical)


class Tasks(Executor[Cell]):
    """Trains cells on a cluster, in this order, with the texts of a data folder. Raises TextError where it
    lacks one; `events` raises SweepError when the cluster is lost, or can't run NormViz."""

    def __init__(self, cluster: Cluster, cells: Sequence[Cell], folder: Path) -> None:
        keys = {cell.config.text for cell in cells} - {""}
        self.texts = {key: cluster.ray.put(texts.read(key, folder)) for key in keys}
        self.task = cluster.ray.remote(num_cpus=1, max_retries=RETRIES)(normviz_cell)
        self.cluster, self.cells, self.ends = cluster, iter(cells), SimpleQueue[Any]()

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[Cell]]:
        handed = dict[Cell, bool]()  # and whether it is said to have begun
        while not stop():
            # All and not as many as there are cores, so that a cluster that grows by demand sees it.
            room = (self.cluster.at_most or MAX_CELLS) - len(handed)
            handed |= dict.fromkeys(map(self._hand, islice(self.cells, room)), False)
            if not handed:
                return
            for cell in [c for c in islice(handed, self.cluster.cores) if not handed[c]]:
                handed[cell] = True
                yield Began(cell)
            try:
                cell, end = self.ends.get(timeout=LOOK)
            except Empty:
                self.cluster.check()
                continue
            if not handed.pop(cell):
                yield Began(cell)
            yield self._ended(cell, end)

    def close(self) -> list[Ended[Cell]]:
        self.cluster.ray.shutdown()
        left = [self.ends.get() for _ in range(self.ends.qsize())]
        return [Ended(cell, end.result()) for cell, end in left if end.exception() is None]

    def _hand(self, cell: Cell) -> Cell:
        config = cell.config
        task = self.task.options(num_gpus=GPU_SHARE if config.device == "cuda" else 0)
        end = task.remote(RELEASE, config.canonical(), self.texts.get(config.text)).future()
        end.add_done_callback(lambda end: self.ends.put((cell, end)))
        return cell

    def _ended(self, cell: Cell, end: Any) -> Ended[Cell]:
        if (error := end.exception()) is None:
            return Ended(cell, end.result())
        if isinstance(error, self.cluster.ray.exceptions.LocalRayletDiedError):
            raise self.cluster.lost()
        why = getattr(error, "cause", None)  # what the task raised
        if why is None or isinstance(why, TextError | StoreError):
            return Ended(cell, problem=str(why) if why else no_result(error))
        said = f"{type(why).__name__}: {why}".splitlines()[-1]
        raise SweepError(f"a node can't train for this machine ({said}): all need {RELEASE}")
