"""Cells that GPUs train together: which ones, and the processes of this machine that do it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...config import engine_on, estimated_gib, estimated_seconds
from ...cores import Gpu, gpus
from ...execution import Began, Ended, Event, Executor, Local
from ...execution.cell import train_stack
from ...training.shape import shape_of
from .grid import Cell

MOST_RUNS, MOST_GIB = 128, 16.0
"""Runs of a stack, and their estimated memory."""
TRIES = 2
"""A cell whose process died is tried once more, in a fresh process, and then counts as failed."""

Stack = tuple[Cell, ...]


def gpus_of_a_grid() -> list[Gpu]:
    """The GPUs of this machine that train one grid: those that are as its first one."""
    return [gpu for gpu in gpus() if gpu.name == gpus()[0].name]


def stacks_of(cells: Sequence[Cell], places: int = 1) -> list[Stack]:
    """Cells that train together: those of one shape, as many as a stack may have; others alone. The longest
    are halved until there are as many stacks as `places`."""
    shapes, stacks = defaultdict[str, list[Cell]](list), list[Stack]()
    for cell in cells:
        if shape := shape_of(cell.config):
            shapes[shape].append(cell)
        else:
            stacks.append((cell,))
    for alike in shapes.values():
        most = int(min(MOST_RUNS, max(1.0, MOST_GIB / estimated_gib(alike[0].config))))
        stacks += [tuple(alike[at : at + most]) for at in range(0, len(alike), most)]
    while stacks and len(stacks) < places and len(longest := max(stacks, key=len)) > 1:
        at, half = stacks.index(longest), len(longest) // 2
        stacks[at : at + 1] = longest[:half], longest[half:]
    return stacks


def seconds_on_gpus(cells: Sequence[Cell], places: int) -> float:
    """Estimated seconds of so many GPUs for these cells in stacks."""
    seconds = 0.0
    for first, *others in stacks_of(cells, places):
        seconds += estimated_seconds(first.config, engine_on(first.config, "cuda"))
        seconds += sum(estimated_seconds(cell.config, "stacked") for cell in others)
    return seconds / max(places, 1)


class Stacks(Executor[Cell]):
    """Cells on the GPUs of this machine: a process for each GPU takes one stack after the other."""

    def __init__(self, cells: Sequence[Cell], folder: Path) -> None:
        own = [{"CUDA_VISIBLE_DEVICES": gpu.visible} for gpu in gpus_of_a_grid()]
        tasks = {
            stack: ([cell.config.canonical() for cell in stack],)
            for stack in stacks_of(cells, len(own))
        }
        self.stacks = Local(train_stack, tasks, folder, len(own), TRIES, environments=own)

    def events(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Event[Cell]]:
        for event in self.stacks.events(stop):
            yield from of_each(event)

    def close(self) -> list[Ended[Cell]]:
        return [
            it for event in self.stacks.close() for it in of_each(event) if isinstance(it, Ended)
        ]


def of_each(event: Event[Stack]) -> Iterator[Event[Cell]]:
    """An event of a stack as one of each of its cells."""
    for i, cell in enumerate(event.task):
        if isinstance(event, Began):
            yield Began(cell)
        else:
            yield Ended(cell, None if event.result is None else event.result[i], event.problem)
