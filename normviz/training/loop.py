"""train(config): one run, from its first parameter to its last step, as a stream of events.

The reader drives the generator: to pause, stop reading; to step, read one more `Step`; to stop,
close it. The one thing that can be changed from outside is the learning rate (`Knobs`).
Everything is deterministic on one machine and one number of threads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from .. import probes
from ..config import ConfigError, RunConfig
from ..model.constraint import constrain
from ..model.data import Task, make_task
from ..model.flat import Flat, profile
from ..model.init import initialise
from ..model.sites import Tap, untapped
from ..model.transformer import Transformer, build
from .divergence import DivergenceGuard
from .events import Edited, Event, Finished, Started, Step
from .schedule import lr_at, peak_at, recorded, with_lr


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
) -> Iterator[Event]:
    """Train one config. Yields Started, one Step a step, then Finished; Diverged comes before it.

    Layers are recorded at `record` (by default `schedule.recorded`) and `also_at`. With steps=0 it
    measures at initialisation and stops. To keep the trained model, make it by `begin` and pass it as
    `begun`. Raises ConfigError for a device that this machine does not have.
    """
    knobs = knobs or Knobs()
    device = find_device(config.device)
    model, task = begun or begin(config)
    if device.type != "cpu":
        model.to(device)  # buffers; the parameters move into the flat buffer next
    flat = Flat(model, device)
    optimizer = Optimizer(config, flat)
    wanted = {*(recorded(config) if record is None else record), *also_at}
    stacks, guard = probes.Stacks(), DivergenceGuard(model, flat, task)
    parameters, threads = sum(p.numel() for p in model.parameters()), torch.get_num_threads()
    yield Started(config, device.type, threads, parameters, task.chance, task.floor, task.text)

    for step in range(max(config.steps, 1)):
        if knobs.lr is not None and knobs.lr != peak_at(config, step):
            config = with_lr(config, step, knobs.lr)
            yield Edited(config)
        knobs.lr = None
        lr = lr_at(config, step)
        model.clock.share = step / max(config.steps, 1)
        tap = probes.fresh_watch() if step in wanted else None
        loss = backward(model, flat, task, step, tap or untapped)
        norm = torch.linalg.vector_norm(flat.grads)
        value, grad_norm = loss.item(), norm.item()
        bad = guard.check(step, value, grad_norm)

        layers = probes.read(probes.StepTensors(config, flat, tap, stacks)) if tap else None
        if bad is None and config.steps:
            before = stacks.copy("before", flat.blocks) if tap else None
            update(config, optimizer, flat, lr, grad_norm)
            if layers is not None and before is not None:
                probes.read_update(layers, flat, before)
        yield Step(step, value, lr, grad_norm, layers)
        if bad is not None:
            yield bad
            break
    yield Finished(step + 1 if config.steps else 0)


def begin(config: RunConfig) -> tuple[Transformer, Task]:
    """A model before its first step, on the CPU, and its task. Raises TextError for a missing text."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    profile(model, config, task)
    return model, task


def find_device(name: str) -> torch.device:
    """The device of a config. Raises ConfigError for a GPU that this machine does not have."""
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise ConfigError(
            "device is 'cuda', but this machine has no CUDA GPU that PyTorch can use: choose auto "
            "or cpu",
            "device",
            name,
        )
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def backward(model: Transformer, flat: Flat, task: Task, step: int, tap: Tap) -> Tensor:
    """Loss of a step's batch in nats, a scalar; its gradients are then in the flat buffer."""
    inputs, targets = task.tensors(step, flat.values.device)
    flat.grads.zero_()
    loss = model.loss(inputs, targets, tap)
    loss.backward()
    return loss.detach()


class Optimizer:
    """AdamW or SGD over the one flat parameter, by PyTorch's functions of these names.

    The classes in `torch.optim` call the same functions, but the first of them in a process imports
    torch._dynamo, which takes about as long as the import of torch itself.
    """

    def __init__(self, config: RunConfig, flat: Flat) -> None:
        self.config = config
        self.values: list[Tensor] = [flat.optimised]
        self.grads = [flat.grads]
        self.momenta: list[Tensor | None] = [None]
        if config.optimizer == "adamw":
            self.means, self.squares = ([torch.zeros_like(flat.grads)] for _ in range(2))
            self.taken = [torch.zeros((), device=flat.grads.device)]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Move the parameter by its gradient, at this learning rate."""
        c = self.config
        if c.optimizer == "sgd":
            sgd(
                self.values, self.grads, self.momenta, lr=lr, momentum=c.momentum,
                weight_decay=c.weight_decay, dampening=0.0, nesterov=False, maximize=False,
            )  # fmt: skip
            return
        adamw(
            self.values, self.grads, self.means, self.squares, [], self.taken, fused=True, lr=lr,
            beta1=c.beta1, beta2=c.beta2, weight_decay=c.weight_decay, eps=1e-8, amsgrad=False,
            maximize=False,
        )  # fmt: skip


def update(
    config: RunConfig, optimizer: Optimizer, flat: Flat, lr: float, grad_norm: float
) -> None:
    """Clip, let the optimizer step at this learning rate, and keep the scheme's constraint."""
    if config.clip is not None and grad_norm > config.clip:
        flat.grads.mul_(config.clip / grad_norm)
    optimizer.step(lr)
    constrain(config.scheme, flat.named())
