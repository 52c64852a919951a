"""One cell of a map or a claim, trained or measured in this process.

Nothing is written while it runs, so a cell is in the store as a whole or not at all.
"""

from __future__ import annotations

import gc
import math
import time
from dataclasses import replace
from functools import cache
from importlib import import_module

from ..config import ConfigError, RunConfig
from ..runs import Recording, RecordingBuilder, empty
from ..runs.store import StoreError
from ..training.schedule import coarse
from .executor import TaskError

LABS = "normviz.studies.labs"
"""The package of the labs; by its name, because it lies above this one."""


@cache
def warm() -> None:
    """Load what the first cell of a process would wait for. From here on it has one thread."""
    from . import preload

    for _ in preload.loop.train(RunConfig(depth=1, steps=2, device="cpu")):
        pass


def train_cell(canonical: str) -> Recording:
    """Train a cell in a child process of this machine."""
    warm()
    return measure(RunConfig.model_validate_json(canonical))


def measure(config: RunConfig) -> Recording:
    """Train a cell to its end, with few layers recorded.

    Its seconds are CPU time of this process, so that they are the same on a busy machine. Every error of a
    run ends as its sentence.
    """
    from ..training.loop import train

    began, builder = time.process_time(), RecordingBuilder()
    error: str | None = None
    # While a model is built a collection finds nothing, and takes longer than building it.
    gc.disable()
    try:
        for _ in builder.follow(train(config, record=coarse(config))):
            pass
    except MemoryError:
        error = "it needs more memory than this machine has"
    except Exception as raised:  # every error of a run ends as its message
        error = str(raised).splitlines()[0] if str(raised) else type(raised).__name__
    finally:
        gc.enable()
    ended = time.process_time()
    if error is not None:
        return replace(empty(config, "failed", error), began=began, ended=ended)
    return replace(builder.recording(), began=began, ended=ended)


def lab_numbers(lab: str, canonical: str) -> tuple[dict[str, float], float]:
    """The numbers that a lab measures of a config, by name, and the CPU seconds that it took.

    Raises TaskError for what can't be measured.
    """
    measured = import_module(f"{LABS}.{lab}")
    try:
        began = time.process_time()
        values = measured.measure(RunConfig.model_validate_json(canonical))
    except (ConfigError, StoreError, ValueError) as error:
        raise TaskError(str(error)) from None
    finite = {key: v if math.isfinite(v) else math.nan for key, v in values.items()}
    return finite, time.process_time() - began
