"""Runs of one shape as one computation: every parameter is a tensor [n, ...] with a run in each row.

A hero's kernels are small for a GPU, whatever starts them: [256, 32] numbers. With n runs side by side they
are [n, 256, 32], in as many kernels. All runs take each step together. What belongs to one run, the guard
where it may have diverged and the probes of recorded steps, reads a model of one run, into which the run's
row is copied. A run rounds otherwise than alone: a product of stacked matrices adds in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from ..config import RunConfig
from ..model.data import Inputs, Tokens, make_task
from ..model.flat import Flat, profile
from ..model.init import initialise
from ..model.transformer import cross_entropy
from . import probes
from .captured import WARM_UP, Captured, Replayed, kept
from .divergence import DivergenceGuard
from .eager import EPS
from .engine import Batch, Unsupported
from .events import Event, Finished, Started, Step
from .loop import begin, finite_or_inf, memory_errors, name_of
from .schedule import held_out_at, lr_at
from .shape import shape_of


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
        flat = Flat(self.model, torch.device("cpu"))
        scales, rows, self.starts = probes.NormScales(self.model, flat), [], []
        for config, task in zip(configs, self.tasks, strict=True):
            initialise(self.model, config)
            profile(self.model, config, task)
            rows.append(flat.values.clone())
            self.starts.append(scales.present())
        self.model.to(device)
        self.flat = Flat(self.model, device)
        self.values = torch.stack(rows).to(device)
        self.grads, self.means, self.squares = (torch.zeros_like(self.values) for _ in range(3))
        first = self.flat.values.data_ptr()
        self.places = {  # a shared module comes once, a tied weight twice
            name: ((p.data_ptr() - first) // p.element_size(), p.shape)
            for where, module in self.model.named_modules()
            for name, p in module.named_parameters(prefix=where, recurse=False)
        }
        ends = {end for at, shape in self.places.values() for end in (at, at + shape.numel())}
        self.cuts = sorted(ends | {0, len(self.flat.values)})
        self.batch: Batch | None = None
        self.replayed = Replayed(device, WARM_UP)
        self.engine = Captured(self.config, self.model, self.flat)

    def load(self, row: int) -> None:
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

    def losses(self, values: Tensor, batch: Batch) -> Tensor:
        """[n] losses of each run's batch, by parameters [n, P]."""

        def one(row: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
            parts = row.split([end - at for at, end in pairwise(self.cuts)])
            at = dict(zip(self.cuts, parts, strict=False))
            params = {name: at[start].view(shape) for name, (start, shape) in self.places.items()}
            logits = functional_call(self.model, params, (inputs,), tie_weights=False)
            return cross_entropy(logits, targets)

        return torch.vmap(one)(values, *batch)

    def _pass(self, batch: Batch) -> Tensor:
        """[2, n] losses and norms of the gradients, which are then in the stack."""
        values = self.values.detach().requires_grad_()
        losses = self.losses(values, batch)
        self.grads.copy_(torch.autograd.grad(losses.sum(), values)[0])
        return torch.stack((losses.detach(), torch.linalg.vector_norm(self.grads, dim=1))).double()

    def step(self, batch: Batch) -> list[list[float]]:
        """Losses and norms of the gradients of all runs."""
        batch = self.batch = kept(self.batch, batch)
        return self.replayed(lambda: self._pass(batch)).tolist()

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> list[float]:
        """The loss of each run's batch in evaluation mode."""
        self.model.eval()
        losses = self.losses(self.values, batch).tolist()
        self.model.train()
        return losses

    def seen(self, row: int) -> tuple[NDArray[np.float64], float]:
        """A run's probes [probes, L+1] of the last step, without the update ratio; the RMS of its logits."""
        assert self.batch is not None
        self.load(row)
        self.engine.scales.start = self.starts[row]
        self.engine.step((self.batch[0][row], self.batch[1][row]), True)
        return self.engine.layers(), finite_or_inf(self.engine.logit_rms())

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


def together(
    configs: Sequence[RunConfig], device: torch.device, record: Collection[int] = ()
) -> Iterator[tuple[int, Event]]:
    """Train runs of one shape on a device. Yields the events of `train` of each with its index, without what
    a model writes. Raises Unsupported, and OutOfMemory."""
    with memory_errors(device):
        stack, c = Stack(configs, device), configs[0]
        guards = [
            DivergenceGuard(stack.model, stack.flat, task, partial(stack.load, row))
            for row, task in enumerate(stack.tasks)
        ]
        held = [it for task in stack.distinct if (it := task.held_out()) is not None]
        usual = [stack.spread(held)] if held else []
        more = zip(
            *(task.last_held_out(c.held_out_batches) for task in stack.distinct), strict=True
        )
        at_last = [stack.spread(batches) for batches in more]
        parameters = sum(p.numel() for p in stack.model.parameters())
        for i, (config, task) in enumerate(zip(configs, stack.tasks, strict=True)):
            numbers = parameters, task.chance, task.floor
            yield i, Started(config, name_of(device), 1, *numbers, task.text, "stacked")
        alive, last = list(range(len(configs))), max(c.steps, 1) - 1
        for step in range(last + 1):
            losses, norms = stack.step(stack.spread([task.batch(step) for task in stack.distinct]))
            bad = {i: it for i in alive if (it := guards[i].check(step, losses[i], norms[i]))}
            seen = {i: stack.seen(i) for i in alive} if step in record else {}
            lr = [lr_at(config, step) for config in configs]
            if c.steps:
                before = stack.values.clone() if seen else stack.values
                clips = [(config.clip, norm) for config, norm in zip(configs, norms, strict=True)]
                stack.move(
                    lr, [k / n if k is not None and n > k else 1.0 for k, n in clips], step + 1
                )
                for i in seen.keys() - bad.keys():
                    stack.load(i)
                    blocks = before[i, : stack.flat.blocks.numel()].view_as(stack.flat.blocks)
                    probes.add_update_ratio(c, seen[i][0], stack.flat, blocks)
            read = at_last if step == last else usual if step in held_out_at(c) else []
            held_out = [fmean(each) for each in zip(*map(stack.evaluate, read), strict=True)]
            for i in alive:
                layers, logit_rms = seen.get(i, (None, None))
                evaluation = finite_or_inf(held_out[i]) if held_out and i not in bad else None
                yield i, Step(step, losses[i], lr[i], norms[i], layers, evaluation, logit_rms)
                if i in bad:
                    yield i, bad[i]
                if i in bad or step == last:
                    yield i, Finished(step + 1 if c.steps else 0)
            alive = [i for i in alive if i not in bad]
            if not alive:
                return
