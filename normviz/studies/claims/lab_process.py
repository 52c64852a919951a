"""What a lab measures, from processes of its own: this one stays without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...execution import Ended, Local
from ...execution.cell import lab_numbers
from ..maps import Cell


@dataclass(frozen=True)
class Reading:
    """What a lab measured of a config, by name, and the CPU seconds that it took."""

    cell: Cell
    values: dict[str, float]
    seconds: float


def measure_all(
    lab: str,
    cells: Sequence[Cell],
    folder: Path,
    stop: Callable[[], bool] = lambda: False,
    processes: int = 1,
) -> Iterator[Reading]:
    """Readings of all cells, as they end, until `stop` says so: also in the middle of one.

    Raises RuntimeError with one sentence where one can't be measured or its process ends before that.
    """
    tasks = {cell: (lab, cell.config.canonical()) for cell in cells}
    with Local(lab_numbers, tasks, folder, processes) as executor:
        for event in executor.events(stop):
            if isinstance(event, Ended):
                if event.problem is not None:
                    raise RuntimeError(event.problem)
                yield Reading(event.task, *event.result)
