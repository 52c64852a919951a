"""One cell, trained in this process: `train`, with few layers recorded, into one object.

Nothing is written while it runs, so a cell is in the store as a whole or not at all.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from functools import cache

import numpy as np

from ...config import RunConfig
from ...runs import Recording, RecordingBuilder, empty
from ...training.events import Started, Step
from ...training.schedule import coarse
from .early import FlatDetector, looks


@cache
def warm() -> None:
    """Load what the first cell of a process would wait for. From here on it has one thread."""
    from ...execution import preload

    for _ in preload.loop.train(RunConfig(depth=1, steps=2, device="cpu")):
        pass


def train_cell(canonical: str, early: bool) -> Recording:
    """Train a cell in a child process of this machine."""
    warm()
    return measure(RunConfig.model_validate_json(canonical), early)


def measure(config: RunConfig, early: bool) -> Recording:
    """Train a cell to its end, or, with `early`, until it counts as flat at chance.

    Its seconds are CPU time of this process, so that they are the same on a busy machine. Every error of a
    run ends as its sentence.
    """
    from ...training.loop import train

    coarse_steps = coarse(config)
    record = {*coarse_steps, *looks(config)} if early else coarse_steps
    began, builder = time.process_time(), RecordingBuilder()
    flat: FlatDetector | None = None
    reason: str | None = None
    error: str | None = None
    # While a model is built a collection finds nothing, and takes longer than building it.
    gc.disable()
    try:
        for event in builder.follow(train(config, record=record)):
            match event:
                case Started():
                    flat = FlatDetector(config, event.chance) if early else None
                case Step() if flat is not None and (reason := flat.check(event)):
                    break
    except MemoryError:
        error = "it needs more memory than this machine has"
    except Exception as raised:  # every error of a run ends as its message
        error = str(raised).splitlines()[0] if str(raised) else type(raised).__name__
    finally:
        gc.enable()
    ended = time.process_time()
    if error is not None:
        return replace(empty(config, "failed", error), began=began, ended=ended)
    recording = builder.recording()
    rows = np.flatnonzero(np.isin(recording.steps.layer_steps, coarse_steps))
    steps = recording.steps.with_layers_of(rows)
    return replace(recording, steps=steps, message=reason, began=began, ended=ended)
