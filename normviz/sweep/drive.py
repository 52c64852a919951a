"""Run what is missing of a grid, and write every cell into the store as soon as it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty

from ..cores import cores
from ..runs import Recording
from ..store import Run, Store
from .cluster import Cluster
from .early import is_flat
from .grid import Cell, Grid, SweepError
from .pool import Began, Ended, Pool
from .tasks import Tasks


@dataclass(frozen=True)
class Reused:
    """The store had the cell's result."""

    cell: Cell
    run: Run


@dataclass(frozen=True)
class Done:
    """The cell was trained now. `run` is its number in the store, None where it failed."""

    cell: Cell
    measured: Recording
    run: int | None


News = Reused | Began | Done

STOP_SECONDS = 0.1
"""How long a stop may take to be noticed."""


def stored(store: Store, key: str, early: bool, shipped: bool = True) -> Run | None:
    """The run that is a cell's result: a finished one, with all its layers where there is one;
    else, with `early`, one that a sweep stopped because it was flat at chance. Without `shipped`
    only what was trained with this store counts."""
    runs = (run for run in store.results(key) if shipped or not run.is_shipped)
    return next((run for run in runs if run.is_done or (early and is_flat(run))), None)


def missing(store: Store, grid: Grid, early: bool) -> list[Cell]:
    """The cells whose result the store does not have, in the grid's order."""
    return [cell for cell in grid.cells if stored(store, cell.key, early) is None]


def sweep(
    store: Store,
    grid: Grid,
    processes: int | None = None,
    early: bool = True,
    stop: Callable[[], bool] = lambda: False,
    cluster: Cluster | None = None,
    shipped: bool = True,
) -> Iterator[News]:
    """Run a grid: what the store has is reused (without `shipped` only what was trained with it), the
    rest trained in `processes` (default: cores) or on a cluster.

    Whoever stops reading, or says so by `stop`, keeps every cell that has ended. A cell that fails
    is told as such and not stored, so that a second start tries it again. Raises SweepError when
    the cluster is lost.
    """
    todo = []
    for cell in grid.cells:
        run = stored(store, cell.key, early, shipped)
        if run is None:
            todo.append(cell)
        else:
            yield Reused(cell, run)
    if not todo:
        return
    if cluster is None:
        pool = Pool(todo, store.folder, processes or cores(), early)
    else:
        pool = Tasks(cluster, todo, store.folder, early)
    yield from _trained(store, pool, len(todo), stop)


def _trained(
    store: Store, pool: Pool | Tasks, left: int, stop: Callable[[], bool]
) -> Iterator[Began | Done]:
    """What the pool says of the cells that are left, each stored before it is told."""
    try:
        while left and not stop():
            try:
                news = pool.news.get(timeout=STOP_SECONDS)
            except Empty:
                continue
            if isinstance(news, SweepError):
                raise news
            if isinstance(news, Ended):
                left -= 1
                try:
                    news = _keep(store, news)
                except KeyboardInterrupt:
                    pool.news.put(news)
                    raise
            yield news
    finally:
        pool.close()
        with suppress(Empty):
            while True:
                if isinstance(news := pool.news.get_nowait(), Ended):
                    _keep(store, news)


def _keep(store: Store, ended: Ended) -> Done:
    """Into the store, as one write."""
    it, run = ended.measured, None
    if it.status != "failed" and it.started is not None:
        (run,) = store.keep_all([it], "sweep")
    return Done(ended.cell, it, run)
