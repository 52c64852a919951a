"""One cell, trained in this process: `train`, with few layers recorded, into one object.

Nothing is written while it runs, so a cell is in the store as a whole or not at all.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from functools import cache

from ..config import RunConfig
from ..events import Diverged, Finished, Started, Step
from ..execution import TaskError
from ..home import home
from ..schedule import coarse
from ..store import StoreError
from ..store.machine_lock import beside_others
from .early import Flat, looks
from .measured import Measured, Status


@cache
def warm() -> None:
    """Load what the first cell of a process would wait for. From here on it has one thread."""
    from ..runner import preload

    for _ in preload.training.train(RunConfig(depth=1, steps=2)):
        pass


def train_cell(canonical: str, early: bool) -> Measured:
    """Train a cell in a child process of this machine, as soon as nobody times there."""
    warm()
    try:
        with beside_others(home()):
            return measure(RunConfig.model_validate_json(canonical), early)
    except StoreError as error:
        raise TaskError(str(error)) from None


def measure(config: RunConfig, early: bool) -> Measured:
    """Train a cell to its end, or, with `early`, until it counts as flat at chance.

    Every error of a run ends as its sentence.
    """
    from ..training import train

    began = time.perf_counter()
    kept = coarse(config)
    record = {*kept, *looks(config)} if early else kept
    started: Started | None = None
    bad: Diverged | None = None
    flat: Flat | None = None
    steps: list[Step] = []
    status: Status = "stopped"
    message: str | None = None
    # While a model is built a collection finds nothing, and takes longer than building it.
    gc.disable()
    try:
        for event in train(config, record=record):
            match event:
                case Started():
                    started = event
                    flat = Flat(config, event.chance) if early else None
                case Step():
                    few = event.step in kept or event.layers is None
                    steps.append(event if few else replace(event, layers=None))
                    if flat is not None and (message := flat.look(event)):
                        break
                case Diverged():
                    bad = event
                case Finished():
                    status = "diverged" if bad else "finished"
    except MemoryError:
        status, message = "failed", "it needs more memory than this machine has"
    except Exception as error:  # every error of a run ends as its message
        status = "failed"
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
    finally:
        gc.enable()
    return Measured(status, started, steps, bad, message, time.perf_counter() - began)
