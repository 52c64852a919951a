"""Runs the cells of a sweep as tasks on a Ray cluster.

`read_address` reads what `--on` names, `Cluster` is the connection, `normviz_cell` is what a node runs, and
`Tasks` is the executor. Ray decides which node trains a cell, and runs a cell again if its process or node
was lost. Results come back here, where alone the store is written. Ray is an optional extra; only
`Cluster` imports it.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ... import __version__
from ...config import ENGINE, RunConfig
from ...cores import cores
from ...execution import Began, Ended, Event, Executor, no_result
from ...execution.cell import measure, warm
from ...execution.executor import STOP_SECONDS
from ...limits import MAX_CELLS
from ...model import texts
from ...model.characters import TextError
from ...runs import Recording, empty
from ...runs.store import Store, StoreError
from .grid import Cell, SweepError

PATIENCE = 20.0
"""Seconds without a node that could train until a cluster counts as lost."""

ALLOWED = (
    "local (this machine), ray (a Ray started here for this sweep), ray:auto (the cluster that runs "
    "here) or ray:HOST:PORT (a cluster that this machine has joined)"
)
QUICK = {
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": "10",
    "RAY_gcs_server_request_timeout_seconds": "10",
}
"""How long Ray looks for a cluster that was named: many minutes by itself."""

LEFT = "has lost its node on this machine"
START = "`ray start --head` starts one, `ray start --address HOST:PORT` joins it elsewhere"


def read_address(word: str) -> str | None:
    """What `--on` names, as the address of a `Cluster`; None for processes of this machine.

    Raises SweepError.
    """
    if word in ("local", "ray"):
        return None if word == "local" else "local"
    address = word.removeprefix("ray:")
    if address != word and (address == "auto" or re.fullmatch(r"[^\s:/]+:\d{1,5}", address)):
        return address
    raise SweepError(f"--on is {word!r}, allowed is {ALLOWED}")


class Cluster:
    """A connection to Ray, good for one sweep.

    address  "local" starts a Ray here that ends with the connection, "auto" takes the one that runs
             here, HOST:PORT one that this machine has joined
    at_most  cells at once; None for as many as there are cores

    Raises SweepError where there is none.
    """

    def __init__(self, address: str, at_most: int | None = None) -> None:
        self.address, self.at_most = address, at_most
        self.ray = _ray({} if address == "local" else QUICK)
        if ":" in address and (error := _silence(address)):
            raise SweepError(f"no Ray cluster answers at {address} ({error}): {START}")
        try:
            self._connect()
            here = self.ray.get_runtime_context()
            self._gcs, self._node = here.gcs_address, here.get_node_id()
            self.cores = self._count()
        except Exception as error:  # Ray raises Exception itself, and much else
            self.close()
            raise SweepError(
                f"no Ray cluster at {address!r} took this machine in ({in_words(error)}): {START}"
            ) from None
        self._seen = time.monotonic()

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address == "local":
            # Cells hand over kilobytes; without a number Ray takes a third of the memory.
            ours = {"num_cpus": self.at_most or cores(), "object_store_memory": 100 * 2**20}
            self.ray.init("local", include_dashboard=False, **ours, **quiet)
        else:
            self.ray.init(self.address, **quiet)

    def check(self) -> None:
        """Count the cores that are there now. Raises SweepError when there have been none for long,
        or when this machine is no longer part of it."""
        # Asked for its nodes, Ray would wait long, or end this process, where nobody answers.
        self.cores = 0 if _silence(self._gcs) else self._count()
        if self.cores:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > PATIENCE:
            raise self.lost(f"has had no node that can train for {PATIENCE:g} seconds")

    def lost(self, how: str) -> SweepError:
        """The sentence of a cluster that will not train what is left."""
        return SweepError(
            f"the Ray cluster at {self._gcs} {how}: {START}; what has ended is stored, and the same "
            "command runs the rest"
        )

    def _count(self) -> int:
        nodes = {node["NodeID"]: node for node in self.ray.nodes() if node["Alive"]}
        if self._node not in nodes:
            raise self.lost(LEFT)
        cores = int(sum(node["Resources"].get("CPU", 0) for node in nodes.values()))
        return min(cores, self.at_most or cores)

    def close(self) -> None:
        """Leave; Ray ends what we have in progress there."""
        self.ray.shutdown()


def _ray(settings: dict[str, str]) -> Any:
    """The library, which reads its settings when it is imported."""
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise SweepError(
            "--on ray needs Ray, which is not installed here: "
            "`pip install -r requirements.txt -e '.[cluster]'` adds it"
        ) from None
    return ray


def _silence(address: str) -> str | None:
    """Why nobody answers at HOST:PORT; None where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return None


def in_words(error: BaseException) -> str:
    """What was at the bottom of it, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    words = str(error) or type(error).__name__
    return words.strip().splitlines()[-1] if "Traceback" in words else " ".join(words.split())


# On a node: one cell, in a process that Ray keeps warm for the next.

RELEASE = (__version__, ENGINE)
"""Whose numbers are the same as ours."""


def normviz_cell(release: tuple[str, int], canonical: str, text: str | None) -> Recording:
    """Train a cell here; `text` is what a config names by its hash, kept here from now on.

    Raises SweepError where this node's NormViz is not the one that asks.
    """
    if release != RELEASE:
        raise SweepError(
            f"the node {platform.node()} has {_named(RELEASE)} and this machine {_named(release)}, "
            "whose results may differ: install the same release on every node"
        )
    config = RunConfig.model_validate_json(canonical)
    try:
        if text is not None and not texts.is_here(config.text):
            texts.add(text, needed=lambda: Store().needed_texts())
    except (TextError, StoreError) as error:
        return empty(config, "failed", str(error))
    warm()
    gc.collect()
    return measure(config)


def _named(release: tuple[str, int]) -> str:
    return f"NormViz {release[0]} (engine {release[1]})"


# The executor, as `Local` is for the processes of this machine.

GPU_SHARE = 1 / 8
"""Of a node's GPU a cell with device=cuda takes this; others run on the CPU."""

RETRIES = 3
"""So many nodes or processes may be lost under a cell before it counts as failed."""

LOOK = 2.0
"""Seconds between looks at a cluster that says nothing."""


class Tasks(Executor[Cell]):
    """Trains cells, in this order, with the texts of a data folder.

    `events` raises SweepError when the cluster is lost, or can't run NormViz. A thread asks Ray, so
    that Ctrl-C never interrupts it there.
    """

    def __init__(self, cluster: Cluster, cells: Sequence[Cell], folder: Path) -> None:
        self._news: SimpleQueue[Event[Cell] | SweepError | None] = SimpleQueue()
        self.cluster, self.folder = cluster, folder
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
            job = (RELEASE, cell.config.canonical(), self._text(cell.config.text))
            on_gpu = cell.config.device == "cuda"
            task = self._task.options(num_gpus=GPU_SHARE) if on_gpu else self._task
            self._handed[task.remote(*job)] = cell
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
