"""Trains the cells of a sweep as tasks of a Ray cluster, which runs a task again whose process or node was
lost. A cell is a task, and where a GPU is asked for a stack of cells. The store is written here alone. Ray is
an extra that only `Cluster` imports."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ... import __version__
from ...config import ENGINE, estimated_gib
from ...cores import cores
from ...execution import Began, Ended, Event, Executor, no_result
from ...execution.cell import train_cell, train_stack
from ...model import texts
from ...model.characters import TextError
from ...runs import Recording
from ...runs.store import Store, StoreError
from .grid import Cell, SweepError
from .stacks import Stack, of_each, stacks_of

RELEASE = f"NormViz {__version__} (engine {ENGINE})"
RETRIES, HANDED = 3, 1000
"""Nodes or processes lost under a task before it has failed; tasks that Ray has at once."""
SHARES, GPU_GIB, CONTEXT_GIB = (1 / 8, 1 / 4, 1 / 2, 1.0), 16.0, 0.5
"""Of a GPU for a task, which Ray does not know the memory of: as if it had so little. A task takes some of it
beside its runs."""
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
    runs here, HOST:PORT one that this machine has joined. Up to `at_most` tasks train at once, by default
    as many as there are cores and GPUs for. Raises SweepError where there is none."""

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
        """Count its `cores` and `gpus`. Raises SweepError when there have been none for long."""
        now, there = time.monotonic(), dict[str, float]()
        with suppress(Exception):
            _greet(self.gcs)  # where nobody answers, Ray would wait for long, or end this process
            there = self.ray.cluster_resources()
        n, self.gpus = int(there.get("CPU", 0)), int(there.get("GPU", 0))
        self.cores, self.seen = min(n, self.at_most or n), now if n else self.seen
        if now - self.seen > PATIENCE:
            raise self.lost()

    def at_once(self, cells: Sequence[Cell]) -> int:
        """How many tasks of these cells train at once."""
        return sum(1 for _ in self.fitting(tasks_of(cells, self.gpus)))

    def fitting(self, tasks: Iterable[Stack]) -> Iterator[Stack]:
        """The first tasks, as many as there are cores and GPUs for."""
        cores, gpus = self.cores, float(self.gpus)
        for task in tasks:
            cores, gpus = cores - 1, gpus - gpu_share(task)
            if cores < 0 or gpus < 0:
                return
            yield task

    def lost(self) -> SweepError:
        """The sentence of a cluster that will not train what is left."""
        lost = f"the Ray cluster at {self.gcs} has no node that can train, or none on this machine"
        return SweepError(f"{lost}: {START}; the same command then runs what is not stored yet")


def _greet(address: str) -> None:
    """Raises OSError or OverflowError where nobody answers at HOST:PORT."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()


def tasks_of(cells: Sequence[Cell], gpus: int) -> list[Stack]:
    """The cells of each task: those that ask for a GPU in stacks, others alone."""
    on_gpus = [cell for cell in cells if cell.config.device == "cuda"]
    alone = [(cell,) for cell in cells if cell.config.device != "cuda"]
    return stacks_of(on_gpus, gpus) + alone


def gpu_share(task: Stack) -> float:
    """The share of a GPU for a task, by its estimated memory; 0 for one that does not ask for a GPU."""
    if task[0].config.device != "cuda":
        return 0.0
    gib = CONTEXT_GIB + len(task) * estimated_gib(task[0].config)
    return next((share for share in SHARES if gib <= share * GPU_GIB), SHARES[-1])


def normviz_cells(release: str, canonicals: Sequence[str], text: str | None) -> list[Recording]:
    """Train a cell, or a stack, on a node, which keeps its text from now on. Raises SweepError where the
    node's NormViz is not the `release` that asks, and TextError or StoreError where it can't keep the text.
    """
    if release != RELEASE:
        raise SweepError(f"{socket.gethostname()} has {RELEASE}")
    if text is not None:
        texts.add(text, needed=lambda: Store().needed_texts())
    return [train_cell(*canonicals)] if len(canonicals) == 1 else train_stack(canonicals)


class Tasks(Executor[Cell]):
    """Trains cells on a cluster, those on GPUs first, else in this order, with the texts of a data folder.
    Raises TextError where it lacks one; `events` raises SweepError when the cluster is lost, or can't run
    NormViz."""

    def __init__(self, cluster: Cluster, cells: Sequence[Cell], folder: Path) -> None:
        keys = {cell.config.text for cell in cells} - {""}
        self.texts = {key: cluster.ray.put(texts.read(key, folder)) for key in keys}
        self.task = cluster.ray.remote(num_cpus=1, max_retries=RETRIES)(normviz_cells)
        self.cluster, self.ends = cluster, SimpleQueue[Any]()
        self.left = iter(tasks_of(cells, cluster.gpus))

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[Cell]]:
        handed = dict[Stack, bool]()  # and whether it is said to have begun
        while not stop():
            # All and not as many as there are cores, so that a cluster that grows by demand sees it.
            room = (self.cluster.at_most or HANDED) - len(handed)
            handed |= dict.fromkeys(map(self._hand, islice(self.left, room)), False)
            if not handed:
                return
            for task in [it for it in self.cluster.fitting(handed) if not handed[it]]:
                handed[task] = True
                yield from of_each(Began(task))
            try:
                task, end = self.ends.get(timeout=LOOK)
            except Empty:
                self.cluster.check()
                continue
            if not handed.pop(task):
                yield from of_each(Began(task))
            yield from of_each(self._ended(task, end))

    def close(self) -> list[Ended[Cell]]:
        self.cluster.ray.shutdown()
        left = [self.ends.get() for _ in range(self.ends.qsize())]
        ended = [Ended(task, end.result()) for task, end in left if end.exception() is None]
        return [it for each in ended for it in of_each(each) if isinstance(it, Ended)]

    def _hand(self, task: Stack) -> Stack:
        canonicals, text = [it.config.canonical() for it in task], task[0].config.text
        remote = self.task.options(num_gpus=gpu_share(task)).remote
        end = remote(RELEASE, canonicals, self.texts.get(text)).future()
        end.add_done_callback(lambda end: self.ends.put((task, end)))
        return task

    def _ended(self, task: Stack, end: Any) -> Ended[Stack]:
        if (error := end.exception()) is None:
            return Ended(task, end.result())
        if isinstance(error, self.cluster.ray.exceptions.LocalRayletDiedError):
            raise self.cluster.lost()
        why = getattr(error, "cause", None)  # what the task raised
        if why is None or isinstance(why, TextError | StoreError):
            return Ended(task, problem=str(why) if why else no_result(error))
        said = f"{type(why).__name__}: {why}".splitlines()[-1]
        raise SweepError(f"a node can't train for this machine ({said}): all need {RELEASE}")
