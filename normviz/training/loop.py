"""train(config): one run, from its first parameter to its last step, as a stream of events.

The reader drives the generator: to pause, stop reading; to step, read one more `Step`; to stop,
close it. The one thing that can be changed from outside is the learning rate (`Knobs`).
Everything is deterministic on one machine and one number of threads.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray

from ..config import ConfigError, RunConfig, device_of
from ..cores import on_gpu
from ..model import draws
from ..model.data import Characters, Task, make_task, placed
from ..model.families import build
from ..model.flat import Flat, profile
from ..model.init import initialise
from ..model.transformer import Transformer
from ..native.library import Unavailable
from .captured import Captured
from .divergence import DivergenceGuard
from .eager import Eager
from .engine import Choice, Engine, Unsupported
from .events import Edited, Event, Finished, OutOfMemory, Started, Step, Writing
from .schedule import held_out_at, lr_at, peak_at, recorded, with_lr, written
from .tape.engine import Tape

ENGINES: dict[Choice, type[Eager]] = {"tape": Tape, "captured": Captured, "eager": Eager}

CPU_IS_FULL = "DefaultCPUAllocator"
"""What PyTorch's error on too little memory of the CPU names."""

WRITTEN = 20
"""Characters that a model writes. Each takes a forward pass of one sequence."""


@dataclass
class Knobs:
    """The settings that may change during a run: set `lr`, and the next step takes it as its peak. A rate
    equal to the present one changes nothing."""

    lr: float | None = None


def train(
    config: RunConfig,
    knobs: Knobs | None = None,
    also_at: Collection[int] = (),
    record: Collection[int] | None = None,
    begun: tuple[Transformer, Task] | None = None,
    engine: Choice = "auto",
    device: str | None = None,
) -> Generator[Event]:
    """Train one config. Yields Started, one Step a step, then Finished; Diverged comes before it.

    Layers are recorded at `record` (by default `schedule.recorded`) and `also_at`. Where `record` is left
    out, a model of a text writes at the steps of `schedule.written`, on a CPU alone. With steps=0 it
    measures at initialisation and stops. To keep the trained model, make it by `begin` and pass it as
    `begun`. `device` is in place of the config's. Where the engine does not run the config, eager does, and
    `Started` says why. Raises ConfigError for a device that this machine does not have, and OutOfMemory.
    """
    where, why_there = (find_device(device), "") if device else _chosen(config)
    wanted = {*(recorded(config) if record is None else record), *also_at}
    writes = written(config) if record is None and where.type == "cpu" else ()
    with memory_errors(where):
        yield from _train(
            config, knobs or Knobs(), (wanted, writes), begun, engine, (where, why_there)
        )


@contextmanager
def memory_errors(device: torch.device) -> Iterator[None]:
    """Turn every error of too little memory on a device into OutOfMemory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or CPU_IS_FULL in str(error):
            raise OutOfMemory(device.type) from None
        raise


def _train(
    config: RunConfig,
    knobs: Knobs,
    at: tuple[Collection[int], Collection[int]],
    begun: tuple[Transformer, Task] | None,
    engine: Choice,
    chosen: tuple[torch.device, str],
) -> Generator[Event]:
    (where, why_there), (wanted, writes) = chosen, at
    model, task = begun or begin(config)
    if where.type != "cpu":
        model.to(where)  # buffers; the parameters move into the flat buffer next
    flat = Flat(model, where)
    runs, why = choose(engine, config, model, flat)
    evaluated = held_out_at(config)
    held_out = task.held_out_tensors(where)
    at_last = [placed(batch, where) for batch in task.last_held_out(config.held_out_batches)]
    guard = DivergenceGuard(model, flat, task)
    parameters = model.learned()
    yield Started(
        config, name_of(where), runs.threads, parameters, task.chance, task.floor, task.text,
        runs.name, "; ".join(filter(None, (why, why_there))),
    )  # fmt: skip

    for step in range(max(config.steps, 1)):
        if knobs.lr is not None and knobs.lr != peak_at(config, step):
            config = with_lr(config, step, knobs.lr)
            yield Edited(config)
        knobs.lr = None
        lr = lr_at(config, step)
        model.clock.step = step
        model.clock.share = step / max(config.steps, 1)
        watched = step in wanted
        loss, grad_norm = runs.step(task.tensors(step, where), watched)
        bad = guard.check(step, loss, grad_norm)

        layers = runs.layers() if watched else None
        logit_rms = finite_or_inf(runs.logit_rms()) if watched else None
        writing = None
        if isinstance(task, Characters) and step in writes and bad is None:
            writing = write(runs, task, config.data_seed)
        if bad is None and config.steps:
            runs.update(lr, grad_norm, layers)
        evaluation = None
        if held_out is not None and bad is None and step in evaluated:
            read = at_last if step + 1 >= config.steps else [held_out]
            evaluation = finite_or_inf(fmean(map(runs.evaluate, read)))
        yield Step(step, loss, lr, grad_norm, layers, evaluation, logit_rms, writing)
        if bad is not None:
            yield bad
            break
    yield Finished(step + 1 if config.steps else 0)


def finite_or_inf(value: float) -> float:
    """A number; inf in place of NaN, which means "not measured" in stores and tables."""
    return value if math.isfinite(value) else math.inf


def write(engine: Engine, task: Characters, seed: int) -> Writing:
    """What a model writes after the task's opening, and where that one's last character looks."""
    T, tokens, looks = task.seq_len, task.opening.tolist(), b""
    for u in draws.uniform(draws.generator("writing", seed), WRITTEN).tolist():
        token = drawn(engine.next_logits(torch.tensor([tokens[-T:]])), u)
        if len(tokens) == T:
            looks = as_bytes(engine.looks())
        if token is None:
            break
        tokens.append(token)
    prompt, text = ("".join(task.alphabet[i] for i in some) for some in (tokens[:T], tokens[T:]))
    return Writing(prompt, text, looks)


def drawn(logits: NDArray[np.float32], u: float) -> int | None:
    """The symbol that a number u in [0, 1) draws by logits [V], so that a small change of the logits seldom
    draws another one; None where a logit is not finite."""
    if not np.isfinite(logits).all():
        return None
    sums = np.exp(logits.astype(np.float64) - logits.max()).cumsum()
    return min(int(np.searchsorted(sums, u * sums[-1], "right")), len(sums) - 1)


def as_bytes(looks: NDArray[np.float32]) -> bytes:
    """Weights of attention as in `Writing`; 0 for one that is not finite."""
    sizes = np.sqrt(np.nan_to_num(looks, nan=0.0, posinf=0.0, neginf=0.0).clip(0.0, 1.0))
    return np.rint(255 * sizes).astype(np.uint8).tobytes()


def begin(config: RunConfig) -> tuple[Transformer, Task]:
    """A model before its first step, on the CPU, and its task. Raises TextError for a missing text."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    profile(model, config, task)
    return model, task


def find_device(name: str) -> torch.device:
    """The device "cpu" or "cuda". Raises ConfigError for a GPU that this machine does not have."""
    if name == "cuda" and (why := _no_gpu()) is not None:
        raise ConfigError(
            f"device is 'cuda', but this machine has no CUDA GPU that PyTorch can use{why}: choose auto "
            "or cpu",
            "device",
            name,
        )
    return torch.device(name)


def name_of(device: torch.device) -> str:
    """A device as results name it: "cpu", or a GPU as in `on_gpu`."""
    if device.type != "cuda":
        return device.type
    tf32 = bool(torch.backends.cuda.matmul.allow_tf32)
    return on_gpu(torch.cuda.get_device_name(device), tf32)


def _chosen(config: RunConfig) -> tuple[torch.device, str]:
    """The device of a config, and a sentence why it is not the other one."""
    name, why = device_of(config)
    if config.device == "auto" and name == "cuda" and (reason := _no_gpu()) is not None:
        return torch.device("cpu"), f"PyTorch can't use the GPU{reason}"
    return find_device(name), why


@cache
def _no_gpu() -> str | None:
    """Why PyTorch can't use a GPU here, in brackets, or "" where it doesn't say; None where it can."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        there = torch.cuda.is_available()
    try:
        if there:
            # A GPU that is too old for this PyTorch runs nothing.
            torch.ones(1, device="cuda").add_(1)
            return None
        reasons = [str(it.message) for it in said]
    except RuntimeError as error:
        reasons = [str(error)]
    return "".join(f" ({it.splitlines()[0].split('. ')[0]})" for it in reasons[:1])


def choose(choice: Choice, config: RunConfig, model: Transformer, flat: Flat) -> tuple[Engine, str]:
    """The engine of a run, and a sentence why it is not the one that was chosen, else ""."""
    if choice == "auto":
        choice = "tape" if flat.values.device.type == "cpu" else "captured"
    try:
        return ENGINES[choice](config, model, flat), ""
    except (Unsupported, Unavailable) as error:
        return Eager(config, model, flat), str(error)
