"""What a lab measures, from a process of its own: this one stays without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from ..home import VARIABLE
from ..sweep import Cell

LOOK_SECONDS = 0.1
"""Between two questions to `stop` while a reading goes on."""


@dataclass(frozen=True)
class Reading:
    """What a lab measured of a config, by name, and the CPU seconds that it took."""

    cell: Cell
    values: dict[str, float]
    seconds: float


def measure_all(
    lab: str, cells: Sequence[Cell], folder: Path, stop: Callable[[], bool] = lambda: False
) -> Iterator[Reading]:
    """Readings of all cells, in order, until `stop` says so: also in the middle of one.

    Raises RuntimeError with one sentence where one can't be measured or the process ends before that.
    """
    environment = {**os.environ, VARIABLE: str(folder), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "normviz.labs", lab],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        start_new_session=True,  # Ctrl-C is for us
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for cell in cells:
            if stop():
                return
            print(cell.config.canonical(), file=process.stdin, flush=True)
            while not wait([process.stdout.fileno()], LOOK_SECONDS):
                if stop():
                    return
            line = process.stdout.readline()  # one answer, written as a whole
            if not line:
                raise RuntimeError(f"the lab {lab} ended with code {process.wait()}")
            said = json.loads(line)
            if "problem" in said:
                raise RuntimeError(said["problem"])
            yield Reading(cell, **said)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
