"""One cell, trained in this process: `train`, with few layers recorded, into one object.

Nothing is written while it runs, so a cell is in the store as a whole or not at all.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from functools import cache

from ...config import RunConfig
from ...runs import Recording, RecordingBuilder, empty
from ...training.schedule import coarse


@cache
def warm() -> None:
    """Load what the first cell of a process would wait for. From here on it has one thread."""
    from ...execution import preload

    for _ in preload.loop.train(RunConfig(depth=1, steps=2, device="cpu")):
        pass


def train_cell(canonical: str) -> Recording:
    """Train a cell in a child process of this machine."""
    warm()
    return measure(RunConfig.model_validate_json(canonical))


def measure(config: RunConfig) -> Recording:
    """Train a cell to its end.

    Its seconds are CPU time of this process, so that they are the same on a busy machine. Every error of a
    run ends as its sentence.
    """
    from ...training.loop import train

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
