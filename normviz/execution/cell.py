"""One cell of a map or a claim, trained or measured in this process.

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
from importlib import import_module

from ..config import ConfigError, RunConfig
from ..runs import Recording, RecordingBuilder, empty
from ..runs.store import StoreError
from ..training.events import OutOfMemory
from ..training.schedule import coarse
from .executor import TaskError, first_line

LABS = "normviz.studies.labs"
"""The package of the labs; by its name, because it lies above this one."""


@cache
def warm() -> None:
    """Load what the first cell of a process would wait for. From here on it has one thread."""
    from . import preload

    for _ in preload.loop.train(RunConfig(depth=1, steps=2, device="cpu")):
        pass


def train_cell(canonical: str) -> Recording:
    """Train a cell in a child process of this machine, on the CPU unless it names a GPU."""
    warm()
    return measure(RunConfig.model_validate_json(canonical))


def train_stack(canonicals: Sequence[str]) -> list[Recording]:
    """Train cells of one shape on the GPU of this machine, in a child process."""
    warm()
    return measure_stack([RunConfig.model_validate_json(canonical) for canonical in canonicals])


def measure(config: RunConfig, device: str | None = None) -> Recording:
    """Train a cell to its end with few layers recorded, on the CPU unless it or `device` names a GPU.

    Its seconds are CPU time of this process, so that they are the same on a busy machine. Every error of a
    run ends as its sentence.
    """
    from ..training.loop import train

    device = device or ("cuda" if config.device == "cuda" else "cpu")
    began, builder = time.process_time(), RecordingBuilder()
    # While a model is built a collection finds nothing, and takes longer than building it.
    gc.disable()
    try:
        for _ in builder.follow(train(config, record=coarse(config), device=device)):
            pass
    except Exception as error:
        failed = empty(config, "failed", sentence_of(error))
        return replace(failed, began=began, ended=time.process_time())
    finally:
        gc.enable()
    return replace(builder.recording(), began=began, ended=time.process_time())


def measure_stack(configs: Sequence[RunConfig]) -> list[Recording]:
    """Train cells of one shape on a GPU: together, or one by one where they can't be. Where the GPU has too
    little memory for all, in halves. Their seconds are equal parts of the time of all. Every
    error of a run ends as its sentence."""
    from ..training.engine import Unsupported
    from ..training.loop import find_device
    from ..training.stacked import together

    if len(configs) == 1:
        return [measure(configs[0], "cuda")]
    builders, began = [RecordingBuilder() for _ in configs], time.perf_counter()
    try:
        for i, event in together(configs, find_device("cuda"), coarse(configs[0])):
            builders[i].note(event)
    except Unsupported:
        return [measure(config, "cuda") for config in configs]
    except OutOfMemory:
        half = len(configs) // 2
    except Exception as error:
        return [empty(config, "failed", sentence_of(error)) for config in configs]
    else:
        seconds = (time.perf_counter() - began) / len(configs)
        return [replace(builder.recording(), began=0.0, ended=seconds) for builder in builders]
    del builders
    return [run for part in (configs[:half], configs[half:]) for run in measure_stack(part)]


def sentence_of(error: Exception) -> str:
    """An error of a run. After one of CUDA itself no later run of the process can succeed: it ends, and the
    cell is tried in another one."""
    sentence = first_line(error)
    if "CUDA error" in sentence and not isinstance(error, OutOfMemory):
        traceback.print_exc()
        os._exit(1)
    return sentence


def lab_numbers(lab: str, canonical: str) -> tuple[dict[str, float], float]:
    """The numbers that a lab measures of a config, by name, and the CPU seconds that it took.

    Raises TaskError for what can't be measured.
    """
    module = import_module(f"{LABS}.{lab}")
    try:
        began = time.process_time()
        values = module.measure(RunConfig.model_validate_json(canonical))
    except (ConfigError, StoreError, ValueError) as error:
        raise TaskError(str(error)) from None
    finite = {key: v if math.isfinite(v) else math.nan for key, v in values.items()}
    return finite, time.process_time() - began
