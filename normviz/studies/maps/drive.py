"""Run what is missing of a grid, and write every cell into the store as soon as it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...cores import cores
from ...execution import Began, Ended, Executor, Local
from ...execution.cell import train_cell
from ...runs import Recording, Run, empty
from ...runs.store import Store
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
    rest trained in `processes` (default: cores) or on a cluster.

    Every cell that has ended is kept if the caller stops reading, or if `stop` returns True. A cell that
    fails is reported and not stored, so that a second start tries it again. Raises SweepError when
    the cluster is lost.
    """
    todo = []
    for cell in grid.cells:
        run = stored(store, cell.key, shipped)
        if run is None:
            todo.append(cell)
        else:
            yield Reused(cell, run)
    if not todo:
        return
    if cluster is None:
        tasks = {cell: (cell.config.canonical(),) for cell in todo}
        executor = Local(train_cell, tasks, store.folder, processes or cores(), TRIES)
    else:
        executor = Tasks(cluster, todo, store.folder)
    yield from _trained(store, executor, stop)


def _trained(
    store: Store, executor: Executor[Cell], stop: Callable[[], bool]
) -> Iterator[Began[Cell] | Done]:
    """The executor's events of the cells that are left; each result is stored before it is yielded."""
    unkept = list[Ended[Cell]]()
    try:
        for event in executor.events(stop):
            if isinstance(event, Began):
                yield event
            else:
                try:
                    done = _keep(store, event)
                except KeyboardInterrupt:
                    unkept = [event]
                    raise
                yield done
    finally:
        for ended in unkept + executor.close():
            _keep(store, ended)


def _keep(store: Store, ended: Ended[Cell]) -> Done:
    """Into the store, as one write."""
    measured = ended.result or empty(ended.task.config, "failed", ended.problem or "")
    if measured.status != "failed" and measured.started is not None:
        (number,) = store.keep_all([measured], "sweep")
        measured = replace(measured, id=number, origin="sweep")
    return Done(ended.task, measured)
