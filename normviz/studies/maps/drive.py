"""Run what is missing of a grid: its cells are in the store's queue while they wait and train, and each is
written as soon as it has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...config import engine_on, estimated_seconds
from ...cores import cores, has_gpu, on_gpu
from ...execution import Began, Ended, Executor, Local
from ...execution.cell import train_cell
from ...runs import Recording, Run, empty
from ...runs.store import Store, cells
from .grid import Cell, Grid
from .ray import Cluster, Tasks
from .stacks import TRIES, Stacks, gpus_of_a_grid, seconds_on_gpus


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


def stored(store: Store, key: str, shipped: bool = True) -> Run | None:
    """The run that is a cell's result: one that reached its end, with all its layers where there is one.
    Without `shipped` only what was trained with this store counts."""
    return next((run for run in store.results(key) if shipped or not run.is_shipped), None)


def found(store: Store, cells: Sequence[Cell], shipped: bool = True) -> dict[Cell, Run]:
    """What `stored` says of cells that have a result, in their order; for thousands in one question."""
    runs = dict[str, Run]()
    for run in store.results_of([cell.key for cell in cells]):
        if shipped or not run.is_shipped:
            runs.setdefault(run.key, run)
    return {cell: runs[cell.key] for cell in cells if cell.key in runs}


def missing(store: Store, grid: Grid) -> list[Cell]:
    """The cells whose result the store does not have, in the grid's order."""
    there = found(store, grid.cells)
    return [cell for cell in grid.cells if cell not in there]


def sweep(
    store: Store,
    grid: Grid,
    processes: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    cluster: Cluster | None = None,
    shipped: bool = True,
) -> Iterator[News]:
    """Run a grid: what the store has is reused (without `shipped` only what was trained with it), the
    rest trained in `processes` (default: cores), on a cluster, or in stacks on the GPUs of this machine (see
    `device_of`). A result of another device is not reused, nor one of another kind of GPU.

    Every cell that has ended is kept if the caller stops reading, or if `stop` returns True. A cell that
    fails is reported and not stored, so that a second start tries it again. Raises SweepError when
    the cluster is lost.
    """
    here = processes or cores()
    device, kept = reused(store, grid, here, cluster is not None, shipped)
    for cell, run in kept.items():
        yield Reused(cell, run)
    todo = [cell for cell in grid.cells if cell not in kept]
    if not todo:
        return
    rows = cells.take(store, [cell.config for cell in todo])
    try:
        for executor in _executors(store, todo, device, here, cluster):
            yield from _trained(store, executor, rows, stop)
            if stop():
                return
    finally:
        cells.leave(store, rows.values())


def reused(
    store: Store, grid: Grid, processes: int, on_cluster: bool = False, shipped: bool = True
) -> tuple[str, dict[Cell, Run]]:
    """The device that trains a grid (see `device_of`; on a cluster the CPU where a cell names none), and the
    cells whose stored results are of that one, in the grid's order."""
    kept = found(store, grid.cells, shipped)
    device = "cpu" if on_cluster else device_of(grid.cells, kept.values(), processes)
    name = on_gpu(gpus_of_a_grid()[0].name) if device == "cuda" else device
    for cell, run in list(kept.items()):
        is_asked = cell.config.device in ("auto", device)
        if is_asked and run.started and run.started.device != name:
            del kept[cell]
    return device, kept


def estimate(cells: Sequence[Cell], device: str, processes: int, gpus: int) -> float:
    """Estimated seconds for cells on a device, in so many processes or on so many GPUs."""
    if device == "cuda":
        return seconds_on_gpus(cells, gpus)
    seconds = sum(estimated_seconds(it.config, engine_on(it.config, "cpu")) for it in cells)
    return seconds / max(1, min(processes, len(cells)))


def _executors(
    store: Store, todo: Sequence[Cell], device: str, processes: int, cluster: Cluster | None
) -> Iterator[Executor[Cell]]:
    """What trains these cells, one after the other."""
    if cluster is not None:
        yield Tasks(cluster, todo, store.folder)
        return
    stacked = ("auto", "cuda") if device == "cuda" else ("cuda",) if has_gpu() else ()
    if on_gpus := [it for it in todo if it.config.device in stacked]:
        yield Stacks(on_gpus, store.folder)
    if alone := [it for it in todo if it.config.device not in stacked]:
        tasks = {cell: (cell.config.canonical(),) for cell in alone}
        yield Local(train_cell, tasks, store.folder, processes, TRIES)


def device_of(cells: Sequence[Cell], kept: Collection[Run], processes: int) -> str:
    """The device of all cells of a grid that don't name one: the CPU where there is no GPU, or where the
    store has some of them from a CPU, else what is estimated to take less time. It is "cuda" too where a cell
    names that and there is a GPU."""
    if not has_gpu():
        return "cpu"
    free = [cell for cell in cells if cell.config.device == "auto"]
    if not free:
        return "cuda" if any(cell.config.device == "cuda" for cell in cells) else "cpu"
    if any(run.started is not None and run.started.device == "cpu" for run in kept):
        return "cpu"
    n = len(gpus_of_a_grid())
    return min(("cpu", "cuda"), key=lambda device: estimate(free, device, processes, n))


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
