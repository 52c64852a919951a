"""One cell, trained in this process: `train`, with few layers recorded, into one object.

Nothing is written while it runs, so a cell is in the store as a whole or not at all.
"""

from __future__ import annotations

import gc
import math
import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ...config import RunConfig
from ...runs import Recording, RecordingBuilder, empty
from ...training.events import Event, OutOfMemory, Started, Step
from ...training.schedule import coarse
from .early import FlatDetector, looks


@cache
def warm() -> None:
    """Load what the first cell of a process would wait for. From here on it has one thread."""
    from ...execution import preload

    for _ in preload.loop.train(RunConfig(depth=1, steps=2, device="cpu")):
        pass


def train_cell(canonical: str, early: bool) -> Recording:
    """Train a cell in a child process of this machine, on the CPU unless it names a GPU."""
    warm()
    return measure(RunConfig.model_validate_json(canonical), early)


def train_stack(canonicals: Sequence[str], early: bool) -> list[Recording]:
    """Train cells of one shape on the GPU of this machine, in a child process."""
    warm()
    return measure_stack([RunConfig.model_validate_json(it) for it in canonicals], early)


class Watched:
    """A cell while it trains, to its end, or, with `early`, until it counts as flat at chance."""

    def __init__(self, config: RunConfig, early: bool) -> None:
        self.config, self.early = config, early
        self.coarse = coarse(config)
        self.record = {*self.coarse, *looks(config)} if early else {*self.coarse}
        self.builder, self.flat = RecordingBuilder(), FlatDetector(config, math.inf)
        self.reason: str | None = None

    def ends(self, event: Event) -> bool:
        """Take in an event. Whether it is the last one, since the run stays flat."""
        self.builder.note(event)
        if isinstance(event, Started):
            self.flat = FlatDetector(self.config, event.chance)
        elif isinstance(event, Step) and self.early:
            self.reason = self.flat.check(event)
        return self.reason is not None

    def recording(self, seconds: float) -> Recording:
        """What came of it, with the layers that a cell keeps."""
        recording = self.builder.recording()
        rows = np.flatnonzero(np.isin(recording.steps.layer_steps, self.coarse))
        steps = recording.steps.with_layers_of(rows)
        return replace(recording, steps=steps, message=self.reason, began=0.0, ended=seconds)


def measure(config: RunConfig, early: bool, device: str | None = None) -> Recording:
    """Train a cell, on the CPU unless it or `device` names a GPU.

    Its seconds are CPU time of this process, so that they are the same on a busy machine. Every error of a
    run ends as its sentence.
    """
    from ...training.loop import train

    device = device or ("cuda" if config.device == "cuda" else "cpu")
    cell, began = Watched(config, early), time.process_time()
    # While a model is built a collection finds nothing, and takes longer than building it.
    gc.disable()
    try:
        for event in train(config, record=cell.record, device=device):
            if cell.ends(event):
                break
    except Exception as error:  # every error of a run ends as its message
        failed = empty(config, "failed", sentence_of(error))
        return replace(failed, began=0.0, ended=time.process_time() - began)
    finally:
        gc.enable()
    return cell.recording(time.process_time() - began)


def measure_stack(configs: Sequence[RunConfig], early: bool) -> list[Recording]:
    """Train cells of one shape on a GPU: together, or one by one where they can't be. Where the GPU has too
    little memory for all, in halves. Their seconds are equal parts of the time of all."""
    from ...training.engine import Unsupported
    from ...training.loop import find_device
    from ...training.stacked import together

    if len(configs) == 1:
        return [measure(configs[0], early, "cuda")]
    cells, stopped, began = [Watched(it, early) for it in configs], set[int](), time.perf_counter()
    record = {step for cell in cells for step in cell.record}
    try:
        for i, event in together(configs, find_device("cuda"), record, stopped):
            if i not in stopped and cells[i].ends(event):
                stopped.add(i)
    except Unsupported:
        return [measure(config, early, "cuda") for config in configs]
    except OutOfMemory:
        half = len(configs) // 2
    except Exception as error:  # every error of a run ends as its message
        return [empty(config, "failed", sentence_of(error)) for config in configs]
    else:
        seconds = (time.perf_counter() - began) / len(cells)
        return [cell.recording(seconds) for cell in cells]
    del cells
    return [it for part in (configs[:half], configs[half:]) for it in measure_stack(part, early)]


def sentence_of(error: Exception) -> str:
    """An error of a run. After one of CUDA itself no later run of the process can succeed: it ends, and the
    cell is tried in another one."""
    sentence = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "CUDA error" in sentence and not isinstance(error, OutOfMemory):
        traceback.print_exc()
        os._exit(1)
    return sentence
