"""Runs of one shape as one computation: every parameter is a tensor [n, ...] with a run in each row.

A hero's kernels are small for a GPU, whatever starts them: [256, 32] numbers. With n runs side by side they
are [n, 256, 32], in as many kernels. All runs take each step together. What belongs to one run, the guard
where it may have diverged and the probes of recorded steps, reads a model of one run, into which the run's
row is copied. A run rounds otherwise than alone: a product of stacked matrices adds in another order.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from ..config import RunConfig
from ..model.data import Inputs, Task, Tokens, make_task
from ..model.flat import Flat, profile
from ..model.gains import Multiplier
from ..model.init import initialise
from ..model.transformer import Transformer
from . import probes
from .captured import WARM_UP, Captured, Replayed
from .divergence import DivergenceGuard
from .eager import EPS
from .engine import Batch, Unsupported
from .events import Event, Finished, Started, Step
from .loop import begin, finite_or_inf, memory_errors, name_of
from .schedule import held_out_at, lr_at
from .shape import shape_of


class Loss(nn.Module):
    """A model whose forward pass gives its loss, for `functional_call`."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.model.loss(inputs, targets)


class Stack:
    """The parameters of n runs, [n, P], and what is computed of them. `model` and `flat` are those of one
    run. Raises Unsupported for runs that can't be one."""

    def __init__(self, configs: Sequence[RunConfig], device: torch.device) -> None:
        if len({shape_of(c) for c in configs}) != 1 or shape_of(configs[0]) is None:
            raise Unsupported("these runs have no one shape")
        self.config, self.device = configs[0], device
        seeds = {c.data_seed: make_task(c) for c in configs}
        self.tasks, self.distinct = [seeds[c.data_seed] for c in configs], list(seeds.values())
        self.of = torch.tensor([list(seeds).index(c.data_seed) for c in configs], device=device)
        self.model, _ = begin(self.config)
        if any(isinstance(it, Multiplier) and it.gain.ramp for it in self.model.modules()):
            raise Unsupported("a stack has no gain that changes with the step")
        flat, rows = Flat(self.model, torch.device("cpu")), []
        for config, task in zip(configs, self.tasks, strict=True):
            initialise(self.model, config)
            profile(self.model, config, task)
            rows.append(flat.values.clone())
        self.model.to(device)
        self.flat = Flat(self.model, device)
        self.values = torch.stack(rows).to(device)
        self.grads, self.means, self.squares = (torch.zeros_like(self.values) for _ in range(3))
        self.leaves, self.module = self._leaves(), Loss(self.model)
        self.fixed = dict(self.module.named_buffers())
        self.replayed = Replayed(device, WARM_UP)
        self.given: Batch | None = None
        self.engine = Captured(self.config, self.model, self.flat)
        self.starts = list[NDArray[np.float64]]()
        for row in range(len(configs)):
            self.copy(row)
            self.starts.append(self.engine.scales.present())

    def _leaves(self) -> dict[str, Tensor]:
        """Each parameter of all runs as one leaf [n, ...] whose gradient lies in the stack."""
        first, made, leaves = self.flat.values.data_ptr(), dict[int, Tensor](), dict[str, Tensor]()
        # A shared module comes once, a tied weight twice.
        for where, module in self.model.named_modules():
            for name, p in module.named_parameters(prefix=where, recurse=False):
                at = (p.data_ptr() - first) // p.element_size()
                if at not in made or made[at].shape[1:] != p.shape:
                    part = slice(at, at + p.numel())
                    made[at] = self.values[:, part].view(-1, *p.shape).detach().requires_grad_()
                    made[at].grad = self.grads[:, part].view(made[at].shape)
                leaves[f"model.{name}"] = made[at]
        return leaves

    def copy(self, row: int) -> None:
        """Copy a run's parameters and gradients into the model of one run."""
        self.flat.values.copy_(self.values[row])
        self.flat.grads.copy_(self.grads[row])

    def spread(self, batches: Sequence[tuple[Inputs, Tokens]]) -> Batch:
        """Inputs and targets [n, B, T] of all runs from those of each data seed."""
        inputs, targets = (
            torch.from_numpy(np.stack(x)).to(self.device, non_blocking=True)[self.of]
            for x in zip(*batches, strict=True)
        )
        return inputs, targets

    def _losses(self, batch: Batch) -> Tensor:
        def one(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return functional_call(self.module, (params, self.fixed), (x, y), tie_weights=False)

        return torch.vmap(one)(self.leaves, *batch)

    def _pass(self) -> Tensor:
        """[2, n] losses and norms of the gradients, which are then in the stack."""
        assert self.given is not None
        self.grads.zero_()
        losses = self._losses(self.given)
        with warnings.catch_warnings():  # a leaf is a part of its run's row
            warnings.filterwarnings("ignore", "grad and param do not obey the gradient layout")
            losses.sum().backward()
        return torch.stack((losses.detach(), torch.linalg.vector_norm(self.grads, dim=1))).double()

    def step(self, batch: Batch) -> list[list[float]]:
        """Losses and norms of the gradients of all runs."""
        if self.given is None:
            self.given = batch[0].clone(), batch[1].clone()
        for mine, its in zip(self.given, batch, strict=True):
            mine.copy_(its)
        return self.replayed(self._pass).tolist()

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> list[float]:
        """The loss of each run's batch in evaluation mode."""
        self.model.eval()
        losses = self._losses(batch).tolist()
        self.model.train()
        return losses

    def seen(self, row: int) -> tuple[NDArray[np.float64], float]:
        """A run's probes [probes, L+1] of the last step, without the update ratio; the RMS of its logits."""
        assert self.given is not None
        self.copy(row)
        self.engine.scales.start = self.starts[row]
        self.engine.step((self.given[0][row], self.given[1][row]), True)
        return self.engine.layers(), finite_or_inf(self.engine.logit_rms())

    def add_update_ratio(self, row: int, layers: NDArray[np.float64], before: Tensor) -> None:
        """Write it into a run's probes; `before` [P] holds its parameters before the update."""
        self.flat.values.copy_(self.values[row])
        blocks = before[: self.flat.blocks.numel()].view(self.flat.blocks.shape)
        probes.add_update_ratio(self.config, layers, self.flat, blocks)

    @torch.no_grad()
    def move(self, lr: Sequence[float], scale: Sequence[float], taken: int) -> None:
        """AdamW of all runs for the `taken`-th time, each at its own learning rate and scale of clipping."""
        c, each = self.config, torch.tensor([lr, scale])[..., None]
        each = each.to(self.device, non_blocking=True)
        self.grads.mul_(each[1])
        self.values.mul_(1 - each[0] * c.weight_decay)
        self.means.lerp_(self.grads, 1 - c.beta1)
        self.squares.lerp_(self.grads * self.grads, 1 - c.beta2)
        root = self.squares.sqrt().div_((1 - c.beta2**taken) ** 0.5).add_(EPS)
        self.values.sub_(self.means.div(root).mul_(each[0] / (1 - c.beta1**taken)))


class Guard(DivergenceGuard):
    """Copies its run's row before it looks for the layer."""

    def __init__(self, stack: Stack, row: int, task: Task) -> None:
        super().__init__(stack.model, stack.flat, task)
        self.stack, self.row = stack, row

    def _forward(self, step: int) -> tuple[list[Tensor], Tensor]:
        self.stack.copy(self.row)
        return super()._forward(step)


def together(
    configs: Sequence[RunConfig],
    device: torch.device,
    record: Collection[int] = (),
) -> Iterator[tuple[int, Event]]:
    """Train runs of one shape on a device. Yields the events of `train` of each with its index, without what
    a model writes. Raises Unsupported, and OutOfMemory."""
    with memory_errors(device):
        yield from _together(configs, device, record)


def _together(
    configs: Sequence[RunConfig],
    device: torch.device,
    record: Collection[int],
) -> Iterator[tuple[int, Event]]:
    stack, c = Stack(configs, device), configs[0]
    guards = [Guard(stack, row, task) for row, task in enumerate(stack.tasks)]
    evaluated = held_out_at(c)
    held = [it for task in stack.distinct if (it := task.held_out()) is not None]
    held_out = stack.spread(held) if held else None
    more = zip(*(task.last_held_out(c.held_out_batches) for task in stack.distinct), strict=True)
    at_last = [stack.spread(batches) for batches in more]
    parameters = sum(p.numel() for p in stack.model.parameters())
    for i, (config, task) in enumerate(zip(configs, stack.tasks, strict=True)):
        started = name_of(device), 1, parameters, task.chance, task.floor, task.text, "stacked"
        yield i, Started(config, *started)
    alive = list(range(len(configs)))
    for step in range(max(c.steps, 1)):
        batch = stack.spread([task.batch(step) for task in stack.distinct])
        losses, norms = stack.step(batch)
        bad = {i: it for i in alive if (it := guards[i].check(step, losses[i], norms[i]))}
        seen = {i: stack.seen(i) for i in alive} if step in record else {}
        lr = [lr_at(config, step) for config in configs]
        if c.steps:
            before = stack.values.clone() if seen else stack.values
            clips = [(config.clip, norm) for config, norm in zip(configs, norms, strict=True)]
            stack.move(lr, [k / n if k is not None and n > k else 1.0 for k, n in clips], step + 1)
            for i in seen.keys() - bad.keys():
                stack.add_update_ratio(i, seen[i][0], before[i])
        its = None
        if held_out is not None and step in evaluated:
            read = at_last if step + 1 >= c.steps else [held_out]
            its = [fmean(losses) for losses in zip(*map(stack.evaluate, read), strict=True)]
        for i in list(alive):
            layers, logit_rms = seen.get(i, (None, None))
            evaluation = None if its is None or i in bad else finite_or_inf(its[i])
            yield i, Step(step, losses[i], lr[i], norms[i], layers, evaluation, logit_rms)
            if i in bad:
                yield i, bad[i]
            if i in bad or step + 1 >= c.steps:
                yield i, Finished(step + 1 if c.steps else 0)
        alive = [i for i in alive if i not in bad]
        if not alive:
            return
