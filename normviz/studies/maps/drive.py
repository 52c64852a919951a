"""Run what is missing of a grid: its cells are in the store's queue while they wait and train, and each is
written as soon as it has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...config import engine_on, estimated_gib, estimated_seconds
from ...cores import cores, has_gpu
from ...execution import Began, Ended, Event, Executor, Local
from ...execution.cell import train_cell, train_stack
from ...runs import Recording, Run, empty
from ...runs.store import Store, cells
from ...training.shape import shape_of
from .grid import Cell, Grid
from .ray import Cluster, Tasks


@dataclass(frozen=True)
class Reused:
    """The store had the cell's result."""

    cell: Cell
    run: Run


@dataclass(frozen=True)
class Done:
    """The cell was trained now. Without a number it is not in the store: it failed."""

    cell: Cell
    measured: Recording


News = Reused | Began[Cell] | Done

TRIES = 2
"""A cell whose process died is tried once more, in a fresh process, and then counts as failed."""
MOST_RUNS, MOST_GIB = 128, 16.0
"""Runs of a stack, and their estimated memory."""


def stored(store: Store, key: str, shipped: bool = True) -> Run | None:
    """The run that is a cell's result: one that reached its end, with all its layers where there is one.
    Without `shipped` only what was trained with this store counts."""
    return next((run for run in store.results(key) if shipped or not run.is_shipped), None)


def missing(store: Store, grid: Grid) -> list[Cell]:
    """The cells whose result the store does not have, in the grid's order."""
    return [cell for cell in grid.cells if stored(store, cell.key) is None]


def sweep(
    store: Store,
    grid: Grid,
    processes: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    cluster: Cluster | None = None,
    shipped: bool = True,
) -> Iterator[News]:
    """Run a grid: what the store has is reused (without `shipped` only what was trained with it), the
    rest trained in `processes` (default: cores), on a cluster, or in stacks on the GPU of this machine (see
    `device_of`). A result of another device is not reused.

    Every cell that has ended is kept if the caller stops reading, or if `stop` returns True. A cell that
    fails is reported and not stored, so that a second start tries it again. Raises SweepError when
    the cluster is lost.
    """
    found = {cell: stored(store, cell.key, shipped) for cell in grid.cells}
    kept = {cell: run for cell, run in found.items() if run is not None}
    here = processes or cores()
    name = "cpu" if cluster else device_of(grid.cells, kept.values(), here)
    for cell, run in list(kept.items()):
        if cell.config.device == "auto" and run.started and run.started.device != name:
            del kept[cell]
    for cell, run in kept.items():
        yield Reused(cell, run)
    todo = [cell for cell in grid.cells if cell not in kept]
    if not todo:
        return
    rows = cells.take(store, [cell.config for cell in todo])
    try:
        for executor in _executors(store, todo, name, here, cluster):
            yield from _trained(store, executor, rows, stop)
            if stop():
                return
    finally:
        cells.leave(store, rows.values())


def _executors(
    store: Store, todo: Sequence[Cell], device: str, processes: int, cluster: Cluster | None
) -> Iterator[Executor[Cell]]:
    """What trains these cells, one after the other."""
    if cluster is not None:
        yield Tasks(cluster, todo, store.folder)
        return
    on_gpu = [it for it in todo if it.config.device in (device, "auto")] if device == "cuda" else []
    if on_gpu:
        yield Stacks(on_gpu, store.folder)
    if alone := [it for it in todo if it not in on_gpu]:
        tasks = {cell: (cell.config.canonical(),) for cell in alone}
        yield Local(train_cell, tasks, store.folder, processes, TRIES)


def device_of(cells: Sequence[Cell], kept: Collection[Run], processes: int) -> str:
    """The device of all cells of a grid that don't name one: the CPU where there is no GPU, or where the
    store has some of them from a CPU, else what is estimated to take less time. It is "cuda" too where a cell
    names that and there is a GPU."""
    if not has_gpu():
        return "cpu"
    free = [cell.config for cell in cells if cell.config.device == "auto"]
    if not free:
        return "cuda" if any(cell.config.device == "cuda" for cell in cells) else "cpu"
    if any(run.started is not None and run.started.device == "cpu" for run in kept):
        return "cpu"
    on_cpu = sum(estimated_seconds(c, engine_on(c, "cpu")) for c in free) / processes
    on_gpu = 0.0
    for first, *others in stacks_of([cell for cell in cells if cell.config.device == "auto"]):
        on_gpu += estimated_seconds(first.config, engine_on(first.config, "cuda"))
        on_gpu += sum(estimated_seconds(cell.config, "stacked") for cell in others)
    return "cuda" if on_gpu < on_cpu else "cpu"


def stacks_of(cells: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    """Cells that train together: those of one shape, as many as a stack may have; others alone."""
    shapes, stacks = defaultdict[str, list[Cell]](list), list[tuple[Cell, ...]]()
    for cell in cells:
        if shape := shape_of(cell.config):
            shapes[shape].append(cell)
        else:
            stacks.append((cell,))
    for alike in shapes.values():
        most = int(min(MOST_RUNS, max(1.0, MOST_GIB / estimated_gib(alike[0].config))))
        stacks += [tuple(alike[at : at + most]) for at in range(0, len(alike), most)]
    return stacks


class Stacks(Executor[Cell]):
    """Cells on the GPU of this machine, a stack after the other, in one child process."""

    def __init__(self, cells: Sequence[Cell], folder: Path) -> None:
        tasks = {it: ([cell.config.canonical() for cell in it],) for it in stacks_of(cells)}
        self.stacks = Local(train_stack, tasks, folder, 1, TRIES)

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[Cell]]:
        for event in self.stacks.events(stop):
            yield from _each(event)

    def close(self) -> list[Ended[Cell]]:
        return [it for event in self.stacks.close() for it in _each(event) if isinstance(it, Ended)]


def _each(event: Event[tuple[Cell, ...]]) -> Iterator[Event[Cell]]:
    """An event of a stack as one of each of its cells."""
    for i, cell in enumerate(event.task):
        if isinstance(event, Began):
            yield Began(cell)
        else:
            yield Ended(cell, None if event.result is None else event.result[i], event.problem)


def _trained(
    store: Store, executor: Executor[Cell], rows: Mapping[str, int], stop: Callable[[], bool]
) -> Iterator[Began[Cell] | Done]:
    """The executor's events of the cells that are left; each result is stored before it is yielded."""
    unkept = list[Ended[Cell]]()
    try:
        for event in executor.events(stop):
            if isinstance(event, Began):
                cells.began(store, rows[event.task.key])
                yield event
            else:
                try:
                    done = _keep(store, rows, event)
                except KeyboardInterrupt:
                    unkept = [event]
                    raise
                yield done
    finally:
        for ended in unkept + executor.close():
            _keep(store, rows, ended)


def _keep(store: Store, rows: Mapping[str, int], ended: Ended[Cell]) -> Done:
    """Into the store, as one write, in place of the row of the queue."""
    measured = ended.result or empty(ended.task.config, "failed", ended.problem or "")
    row = rows[ended.task.key]
    if measured.status != "failed" and measured.started is not None:
        (number,) = store.keep_all([measured], "sweep")
        measured = replace(measured, id=number, origin="sweep")
        cells.leave(store, [row])
    else:
        store.end(row, "failed", message=measured.message)
    return Done(ended.task, measured)
