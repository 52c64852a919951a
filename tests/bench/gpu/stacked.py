"""Runs of one shape trained together: the forward and backward pass of all is one pass of stacked tensors.

    for index, event in together(configs): ...        # the events of `train`, run by run in turn

A hero's kernels are small for a GPU, whatever starts them: [256, 32] numbers. With n runs side by side they
are [n, 256, 32], in as many kernels. The runs may differ in seeds, learning rate, clipping and initial
values: a map over learning rates and seeds is one stack for each depth.

Each run has its own generator of `train`, its own guard and its own `Flat`, whose buffers are a row of the
stack's [n, P]. The generators are read in turn, one step each. The first that asks for a step has it computed
for all. Updates wait until the next step begins and then move all rows at once. Recorded steps run alone, by
eager's pass on the run's row, because probes read a model's own tensors.

Not bit by bit the numbers of one run alone: a product of stacked matrices rounds in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from normviz.catalog import SCHEMES
from normviz.catalog.scheme import Place
from normviz.config import RunConfig
from normviz.model.data import Task
from normviz.model.flat import Flat
from normviz.model.transformer import Transformer
from normviz.training import loop, probes
from normviz.training.eager import EPS, Eager, moves_alike
from normviz.training.engine import Batch
from normviz.training.events import Event, Step

from . import train_by

FREE = {
    "init", "init_seed", "data_seed", "lr", "lr_edits", "clip", "warmup", "schedule", "weight_gain",
}  # fmt: skip
"""Settings that runs of one stack may have differently: they enter as numbers, before or after the pass."""


def shape_of(config: RunConfig) -> str:
    """Runs with the same one can be stacked. Raises ValueError for a run that can't be."""
    c = config.placed()
    if c.family != "decoder" or c.optimizer != "adamw" or not moves_alike(c):
        raise ValueError("a stack trains decoders, and moves all parameters by one AdamW")
    scheme = SCHEMES[c.scheme]
    constrained = (
        scheme.constraint != "none" or scheme.slots(Place(1, c.depth, "attention")).spectral
    )
    if c.dropout or c.zloss or c.norm in ("batchnorm", "powernorm", "tapernorm") or constrained:
        raise ValueError("a stack has no dropout, z-loss, running state or constraint on weights")
    return str(
        sorted((name, getattr(c, name)) for name in RunConfig.model_fields if name not in FREE)
    )


class Loss(nn.Module):
    """A model whose forward pass gives its loss, for `functional_call`."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.model.loss(inputs, targets)


class Group:
    """A stack of runs. Raises ValueError for runs that can't be one."""

    def __init__(self, configs: Sequence[RunConfig]) -> None:
        if len({shape_of(c) for c in configs}) != 1:
            raise ValueError("runs of a stack have one shape")
        self.configs, self.device = configs, loop.find_device(configs[0].device)
        self.begun = [loop.begin(c) for c in configs]
        self.places: dict[str, tuple[int, torch.Size]] = {}
        self.stack: dict[str, Tensor] = {}
        self.planned: dict[int, tuple[float, float]] = {}
        self.found: dict[int, float] = {}
        self.batches: dict[tuple[int, int], Batch] = {}
        self.graph: torch.cuda.CUDAGraph | None = None

    def run(self, index: int, record: Collection[int]) -> Iterator[Event]:
        """The events of one run. Read the first of all runs before a second one."""
        model, task = self.begun[index]
        begun = model, Shared(self, index, task)
        return train_by(partial(self._lane, index), self.configs[index], record, begun)

    def _lane(self, index: int, config: RunConfig, model: Transformer, flat: Flat) -> Lane:
        """The engine of one run; its parameters become a row of the stack."""
        if not self.places:
            shape = len(self.configs), len(flat.values)
            self.values, self.grads, self.means, self.squares = (
                torch.zeros(shape, device=self.device) for _ in range(4)
            )
            first = flat.values.data_ptr()
            for where, module in model.named_modules():  # a shared module once, a tied weight twice
                for name, p in module.named_parameters(prefix=where, recurse=False):
                    self.places[name] = (p.data_ptr() - first) // p.element_size(), p.shape
        move_into(model, flat, self.values[index], self.grads[index])
        return Lane(config, model, flat, self, index)

    def _stacked(self) -> None:
        """Each parameter of all runs as one leaf [n, ...] whose gradient lies in the stack."""
        leaves: dict[int, Tensor] = {}
        for name, (at, shape) in self.places.items():
            if at not in leaves or leaves[at].shape[1:] != shape:
                part = slice(at, at + shape.numel())
                leaf = self.values[:, part].view(-1, *shape).detach().requires_grad_()
                leaf.grad = self.grads[:, part].view(leaf.shape)
                leaves[at] = leaf
            self.stack[f"model.{name}"] = leaves[at]
        self.module = Loss(self.begun[0][0])
        self.fixed = dict(self.module.named_buffers())

    def batch(self, index: int, step: int) -> Batch:
        """The batch of a run's step. Runs with the same data have the same tensors."""
        key = self.configs[index].data_seed, step
        if key not in self.batches:
            self.batches = {k: b for k, b in self.batches.items() if k[1] == step}
            self.batches[key] = self.begun[index][1].tensors(step, self.device)
        return self.batches[key]

    def loss(self, index: int, step: int) -> float:
        """The loss of a run's step; computes that of all runs where it is the first to ask."""
        if index not in self.found:
            if not self.stack:
                self._stacked()
            batches = [self.batch(i, step) for i in range(len(self.configs))]
            inputs, targets = (torch.stack(x) for x in zip(*batches, strict=True))
            self.found = dict(enumerate(self._replayed(inputs, targets).tolist()))
        return self.found.pop(index)

    def _losses(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """[n] losses of batches [n, B, T]; the gradients are then in the stack."""

        def one(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return functional_call(self.module, (params, self.fixed), (x, y), tie_weights=False)

        self.grads.zero_()
        losses = torch.vmap(one)(self.stack, inputs, targets)
        losses.sum().backward()
        return losses.detach()

    def _replayed(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """`_losses`, on a GPU by a graph that the first call captures."""
        if self.device.type != "cuda":
            return self._losses(inputs, targets)
        if self.graph is None:
            self.given = inputs.clone(), targets.clone()
            stream = torch.cuda.Stream(self.device)
            stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(stream):
                for _ in range(3):  # writes nothing but the gradients, which begin at 0 each time
                    self._losses(*self.given)
            torch.cuda.current_stream(self.device).wait_stream(stream)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
                self.out = self._losses(*self.given)
        for mine, given in zip(self.given, (inputs, targets), strict=True):
            mine.copy_(given)
        self.graph.replay()
        return self.out

    def settle(self, taken: int) -> None:
        """Do all planned updates, the `taken`-th of their runs: at once, or row by row where a run has moved
        already or has ended."""
        if len(self.planned) < len(self.configs):
            for i in list(self.planned):
                self.settle_one(i, taken)
            return
        self.move(slice(None), taken, [self.planned.pop(i) for i in range(len(self.configs))])

    def settle_one(self, index: int, taken: int) -> None:
        """Do the planned update of one run now, before its parameters are read."""
        if index in self.planned:
            self.move(slice(index, index + 1), taken, [self.planned.pop(index)])

    @torch.no_grad()
    def move(self, rows: slice, taken: int, moves: Sequence[tuple[float, float]]) -> None:
        """AdamW of rows for the `taken`-th time, each with its own learning rate and scale of clipping."""
        lr, scale = torch.tensor(moves, device=self.device).T[..., None]
        c = self.configs[0]
        p, g, m, v = (x[rows] for x in (self.values, self.grads, self.means, self.squares))
        g.mul_(scale)
        p.mul_(1 - lr * c.weight_decay)
        m.lerp_(g, 1 - c.beta1)
        v.lerp_(g * g, 1 - c.beta2)
        root = v.sqrt().div_((1 - c.beta2**taken) ** 0.5).add_(EPS)
        p.sub_(m.div(root).mul_(lr / (1 - c.beta1**taken)))


class Lane(Eager):
    """The engine of one run of a stack."""

    name = "stacked"

    def __init__(
        self, config: RunConfig, model: Transformer, flat: Flat, group: Group, index: int
    ) -> None:
        super().__init__(config, model, flat)
        self.group, self.index, self.taken, self.watched = group, index, 0, False

    def step(self, batch: Batch, watched: bool) -> float:
        if self.index in self.group.planned:  # a new step: all others have planned theirs
            self.group.settle(self.taken)
        self.watched = watched
        if watched:
            return super().step(batch, watched)
        return self.group.loss(self.index, self.model.clock.step)

    def evaluate(self, batch: Batch) -> float:
        self.group.settle_one(self.index, self.taken)
        return super().evaluate(batch)

    def update(
        self, config: RunConfig, lr: float, grad_norm: float, layers: NDArray[np.float64] | None
    ) -> None:
        self.taken += 1
        clips = config.clip is not None and grad_norm > config.clip
        self.group.planned[self.index] = lr, config.clip / grad_norm if clips else 1.0
        if self.watched:
            before = self.flat.blocks.clone()
            self.group.settle_one(self.index, self.taken)
            if layers is not None:
                probes.add_update_ratio(self.config, layers, self.flat, before)


def move_into(model: Transformer, flat: Flat, values: Tensor, grads: Tensor) -> None:
    """Make a row of the stack the buffers of a packed model."""
    first, size = flat.values.data_ptr(), flat.values.element_size()
    values.copy_(flat.values)
    for p in model.parameters():
        at, n, shape = (p.data_ptr() - first) // size, p.numel(), p.shape
        p.data, p.grad = values[at : at + n].view(shape), grads[at : at + n].view(shape)
    rows, row = flat.blocks.shape
    flat.values, flat.grads = values, grads
    flat.blocks, flat.block_grads = (x[: rows * row].view(rows, row) for x in (values, grads))
    names = {name for name, _ in flat.outside}
    flat.outside = [(n, p.data) for n, p in model.named_parameters() if n in names]
    flat.optimised = nn.Parameter(values)
    flat.optimised.grad = grads


class Shared(Task):
    """A run's task whose batches come from its group, so that runs with the same data make them once."""

    def __init__(self, group: Group, index: int, task: Task) -> None:
        self.__dict__.update(task.__dict__)
        self.vocabulary, self.chance, self.floor = task.vocabulary, task.chance, task.floor
        self._group, self._index, self._task = group, index, task

    def tensors(self, step: int, device: torch.device) -> Batch:
        return self._group.batch(self._index, step)

    def held_out(self) -> Any:
        return self._task.held_out()

    def _make(self, rng: np.random.Generator) -> Any:
        return self._task._make(rng)


def together(
    configs: Sequence[RunConfig], record: Collection[int] = ()
) -> Iterator[tuple[int, Event]]:
    """Train runs of one shape together. Yields the events of each with its index."""
    group = Group(configs)
    runs = {i: group.run(i, record) for i in range(len(configs))}
    started = [(i, next(run)) for i, run in runs.items()]  # all are rows before the first step
    yield from started
    while runs:
        for i, run in list(runs.items()):
            for event in run:
                yield i, event
                if isinstance(event, Step):
                    break
            else:
                del runs[i]
