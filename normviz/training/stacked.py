"""Runs of one shape as one computation: every parameter is a tensor [n, ...] with a run in each row.

The kernels of the preset `hero` are small for a GPU, whatever starts them: [256, 32] numbers. With n runs
side by side they are [n, 256, 32], in as many kernels. All runs take each step together. The guard of a run
that may have diverged reads a model of one run, into which the run's row is copied. A run rounds otherwise
than alone: a product of stacked matrices adds in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call

from ..config import RunConfig
from ..model.data import Inputs, Tokens, make_task
from ..model.flat import Flat, profile
from ..model.init import initialise
from ..model.sites import untapped
from ..model.transformer import cross_entropy
from . import probes
from .captured import WARM_UP, Replayed, in_tensors_of
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
        rows, tap = list[Tensor](), probes.Recorder(("stream",))
        for config, task in zip(configs, self.tasks, strict=True):
            initialise(self.model, config)
            profile(self.model, config, task)
            rows.append(flat.values.clone())
        self.model(self.tasks[0].tensors(0, torch.device("cpu"))[0], tap)
        self.shapes = [x.shape for x in tap.seen["stream"]]
        self.model.to(device)
        self.flat = Flat(self.model, device)
        self.values = torch.stack(rows).to(device)
        self.grads, self.means, self.squares = (torch.zeros_like(self.values) for _ in range(3))
        self.places = {  # a shared module comes once, a tied weight twice
            name: (p.storage_offset(), p.shape)
            for where, module in self.model.named_modules()
            for name, p in module.named_parameters(prefix=where, recurse=False)
        }
        ends = {end for at, shape in self.places.values() for end in (at, at + shape.numel())}
        self.cuts = sorted(ends | {0, len(self.flat.values)})
        self.batch: Batch | None = None
        self.replayed = Replayed(device, WARM_UP)
        self.scales = probes.NormScales(self.model, self.flat, self.values)
        self.blocks = self.values[:, : self.flat.blocks.numel()].view(-1, *self.flat.blocks.shape)

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

    def losses(self, values: Tensor, batch: Batch, zeros: list[Tensor]) -> tuple[Tensor, Any]:
        """[n] losses of each run's batch, by parameters [n, P]; with `zeros`, also what a recorder sees."""

        def one(row: Tensor, inputs: Tensor, targets: Tensor, zeros: list[Tensor]) -> Any:
            parts = row.split([end - at for at, end in pairwise(self.cuts)])
            at = dict(zip(self.cuts, parts, strict=False))
            params = {name: at[start].view(shape) for name, (start, shape) in self.places.items()}
            tap = probes.AddingRecorder(self.config, zeros) if zeros else untapped
            logits = functional_call(self.model, params, (inputs, tap), tie_weights=False)
            return cross_entropy(logits, targets), dict(getattr(tap, "seen", {}))

        return torch.vmap(one)(values, *batch, zeros)

    def _pass(self, batch: Batch, watched: bool) -> Tensor:
        """[n, 2] or [n, 3 + probes x rows] the `numbers_of` each run; the gradients are then in the stack."""
        values, shapes = self.values.detach().requires_grad_(), self.shapes if watched else []
        zeros = [values.new_zeros(len(values), *it, requires_grad=True) for it in shapes]
        losses, seen = self.losses(values, batch, zeros)
        grads, *at_stream = torch.autograd.grad(losses.sum(), [values, *zeros])
        self.grads.copy_(grads)
        head = torch.stack((losses.detach(), torch.linalg.vector_norm(grads, dim=1)), 1).double()
        if not watched:
            return head
        more = probes.probe_rows(self.config, self.flat, self.scales, seen, grads, at_stream)
        return torch.cat((head, more), 1)

    def step(self, batch: Batch, watched: bool) -> NDArray[np.float64]:
        """The numbers of `_pass`."""
        batch = self.batch = in_tensors_of(self.batch, batch)
        return self.replayed(lambda watched: self._pass(batch, watched), watched).numpy()

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> list[float]:
        """The loss of each run's batch in evaluation mode."""
        self.model.eval()
        losses = self.losses(self.values, batch, [])[0].tolist()
        self.model.train()
        return losses

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
        more = [task.last_held_out(c.held_out_batches) for task in stack.distinct]
        at_last = [stack.spread(batches) for batches in zip(*more, strict=True)]
        evaluated = held_out_at(c)
        where, size = name_of(device), sum(p.numel() for p in stack.model.parameters())
        for i, (config, it) in enumerate(zip(configs, stack.tasks, strict=True)):
            yield i, Started(config, where, 1, size, it.chance, it.floor, it.text, "stacked")
        alive, last = list(range(len(configs))), max(c.steps, 1) - 1
        for step in range(last + 1):
            batch, watched = stack.spread([it.batch(step) for it in stack.distinct]), step in record
            numbers = stack.step(batch, watched)
            losses, norms = numbers[:, :2].T.tolist()
            bad = {i: it for i in alive if (it := guards[i].check(step, losses[i], norms[i]))}
            layers = probes.layers_of(c, numbers[:, 3:], stack.scales) if watched else None
            lr = [lr_at(config, step) for config in configs]
            if c.steps:
                before = stack.blocks.clone() if watched else None
                clips = [(config.clip, norm) for config, norm in zip(configs, norms, strict=True)]
                scale = [k / n if k is not None and n > k else 1.0 for k, n in clips]
                stack.move(lr, scale, step + 1)
                if layers is not None and before is not None:
                    as_before = layers[list(bad)]  # they end before their update
                    probes.add_update_ratio(c, layers, stack.blocks, before)
                    layers[list(bad)] = as_before
            read = at_last if step == last else usual if step in evaluated else []
            held_out = [fmean(each) for each in zip(*map(stack.evaluate, read), strict=True)]
            for i in alive:
                seen = None if layers is None else layers[i]
                rms = finite_or_inf(float(numbers[i, 2])) if watched else None
                evaluation = finite_or_inf(held_out[i]) if held_out and i not in bad else None
                yield i, Step(step, losses[i], lr[i], norms[i], seen, evaluation, rms)
                if i in bad:
                    yield i, bad[i]
                if i in bad or step == last:
                    yield i, Finished(step + 1 if c.steps else 0)
            alive = [i for i in alive if i not in bad]
            if not alive:
                return
