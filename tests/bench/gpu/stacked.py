"""Runs of one shape as one computation: every parameter is a tensor [n, ...] with a run in each row.

A hero's kernels are small for a GPU, whatever starts them: [256, 32] numbers. With n runs side by side they
are [n, 256, 32], in as many kernels. The runs may differ in seeds, learning rate, clipping and initial
values: a map over learning rates and seeds is one stack for each depth.

All runs take each step together: one forward and backward pass, one update, one held-out loss. What belongs
to one run reads a model of its own shape, into whose buffers the run's row is copied: the guard of a run
that may have diverged, and the probes of recorded steps.

Not bit by bit the numbers of one run alone: a product of stacked matrices rounds in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from normviz.catalog import SCHEMES
from normviz.catalog.scheme import Place
from normviz.config import RunConfig
from normviz.model.data import Task, make_task
from normviz.model.flat import Flat, profile
from normviz.model.init import initialise
from normviz.model.transformer import Transformer
from normviz.training import loop, probes
from normviz.training.divergence import DivergenceGuard
from normviz.training.eager import EPS, moves_alike
from normviz.training.engine import Batch
from normviz.training.events import Event, Finished, Started, Step
from normviz.training.loop import finite_or_inf
from normviz.training.schedule import held_out_at, lr_at

from .captured import WARM_UP, Captured, settled

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


class Stack:
    """The parameters of n runs, [n, P], and the passes over them. Raises ValueError for runs that can't be
    one.

    `model` and `flat` are those of one run, for what is computed run by run: see `copy`.
    """

    def __init__(self, configs: Sequence[RunConfig]) -> None:
        if len({shape_of(c) for c in configs}) != 1:
            raise ValueError("runs of a stack have one shape")
        self.config, self.device = configs[0], loop.find_device(configs[0].device)
        seeds = {c.data_seed: make_task(c) for c in configs}
        self.tasks = [seeds[c.data_seed] for c in configs]
        self.model, _ = loop.begin(self.config)
        if settled(self.config, self.model) > WARM_UP:
            raise ValueError("a stack has no gain that changes with the step")
        flat, rows = Flat(self.model, torch.device("cpu")), []
        for config, task in zip(configs, self.tasks, strict=True):
            initialise(self.model, config)
            profile(self.model, config, task)
            rows.append(flat.values.clone())
        self.model.to(self.device)
        self.flat = Flat(self.model, self.device)
        self.values = torch.stack(rows).to(self.device)
        self.grads, self.means, self.squares = (torch.zeros_like(self.values) for _ in range(3))
        self.distinct = list(seeds.values())
        place = {id(task): k for k, task in enumerate(self.distinct)}
        self.of = torch.tensor([place[id(task)] for task in self.tasks], device=self.device)
        self.leaves = self._leaves()
        self.module = Loss(self.model)
        self.fixed = dict(self.module.named_buffers())
        self.graph: torch.cuda.CUDAGraph | None = None

    def _leaves(self) -> dict[str, Tensor]:
        """Each parameter of all runs as one leaf [n, ...] whose gradient lies in the stack."""
        first, made, leaves = self.flat.values.data_ptr(), dict[int, Tensor](), dict[str, Tensor]()
        # A shared module comes once, a tied weight twice.
        for where, module in self.model.named_modules():
            for name, p in module.named_parameters(prefix=where, recurse=False):
                at = (p.data_ptr() - first) // p.element_size()
                if at not in made or made[at].shape[1:] != p.shape:
                    part = slice(at, at + p.numel())
                    leaf = self.values[:, part].view(-1, *p.shape).detach().requires_grad_()
                    leaf.grad = self.grads[:, part].view(leaf.shape)
                    made[at] = leaf
                leaves[f"model.{name}"] = made[at]
        return leaves

    def copy(self, row: int) -> None:
        """Copy a run's parameters and gradients into the model of one run."""
        self.flat.values.copy_(self.values[row])
        self.flat.grads.copy_(self.grads[row])

    def batches(self, step: int) -> Batch:
        """Inputs and targets [n, B, T] of a step. Runs with the same data have the same."""
        return self._spread([task.batch(step) for task in self.distinct])

    def held_out(self) -> Batch | None:
        """The held-out batches [n, B, T], or None where the task has none."""
        found = [task.held_out() for task in self.distinct]
        return None if None in found else self._spread([it for it in found if it is not None])

    def _spread(self, batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> Batch:
        inputs, targets = (
            torch.from_numpy(np.stack(x)).to(self.device, non_blocking=True)[self.of]
            for x in zip(*batches, strict=True)
        )
        return inputs, targets

    def _losses(self, inputs: Tensor, targets: Tensor) -> Tensor:
        def one(params: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return functional_call(self.module, (params, self.fixed), (x, y), tie_weights=False)

        return torch.vmap(one)(self.leaves, inputs, targets)

    def _pass(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """[2, n] losses and norms of the gradients, which are then in the stack."""
        self.grads.zero_()
        losses = self._losses(inputs, targets)
        losses.sum().backward()
        return torch.stack((losses.detach(), torch.linalg.vector_norm(self.grads, dim=1))).double()

    def step(self, inputs: Tensor, targets: Tensor) -> list[list[float]]:
        """`_pass`, on a GPU by a graph that the first call captures; on the host."""
        if self.device.type != "cuda":
            return self._pass(inputs, targets).tolist()
        if self.graph is None:
            self.given = inputs.clone(), targets.clone()
            stream = torch.cuda.Stream(self.device)
            stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP):  # writes nothing but the gradients, which begin at 0
                    self._pass(*self.given)
            torch.cuda.current_stream(self.device).wait_stream(stream)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
                self.out = self._pass(*self.given)
        for mine, given in zip(self.given, (inputs, targets), strict=True):
            mine.copy_(given)
        self.graph.replay()
        return self.out.tolist()

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> list[float]:
        """The loss of each run's batch in evaluation mode."""
        self.model.eval()
        losses = self._losses(*batch).tolist()
        self.model.train()
        return losses

    @torch.no_grad()
    def move(self, lr: Sequence[float], scale: Sequence[float], taken: int) -> None:
        """AdamW of all rows for the `taken`-th time, each at its own learning rate and scale of clipping."""
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


class Probes:
    """The probes of each run on recorded steps, by a captured step of the model of one run."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.engine = Captured(stack.config, stack.model, stack.flat)
        self.starts = []
        for row in range(len(stack.values)):
            stack.copy(row)
            self.starts.append(self.engine.scales._present())

    def seen(self, row: int, batch: Batch) -> tuple[np.ndarray, float]:
        """The probes [probes, L+1] of a run's batch, but for the update ratio, and the RMS of its logits."""
        self.stack.copy(row)
        self.engine.scales.start = self.starts[row]
        self.engine.step((batch[0][row], batch[1][row]), True)
        return self.engine.layers(), finite_or_inf(self.engine.logit_rms())

    def add_update_ratio(self, row: int, layers: np.ndarray, before: Tensor) -> None:
        """`before` [P] holds the run's parameters before the update."""
        flat = self.stack.flat
        flat.values.copy_(self.stack.values[row])
        blocks = before[: flat.blocks.numel()].view(flat.blocks.shape)
        probes.add_update_ratio(self.stack.config, layers, flat, blocks)


def together(
    configs: Sequence[RunConfig], record: Collection[int] = ()
) -> Iterator[tuple[int, Event]]:
    """Train runs of one shape together. Yields the events of `loop.train` of each with its index."""
    stack, c = Stack(configs), configs[0]
    watcher = Probes(stack) if record else None
    guards = [Guard(stack, row, task) for row, task in enumerate(stack.tasks)]
    evaluated, held_out = held_out_at(c), stack.held_out()
    parameters = sum(p.numel() for p in stack.model.parameters())
    for i, (config, task) in enumerate(zip(configs, stack.tasks, strict=True)):
        yield i, Started(
            config, stack.device.type, 1, parameters, task.chance, task.floor, task.text, "stacked", ""
        )  # fmt: skip
    alive = list(range(len(configs)))
    for step in range(max(c.steps, 1)):
        stack.model.clock.step, stack.model.clock.share = step, step / max(c.steps, 1)
        batch = stack.batches(step)
        losses, norms = stack.step(*batch)
        bad = {i: it for i in alive if (it := guards[i].check(step, losses[i], norms[i]))}
        seen = {i: watcher.seen(i, batch) for i in alive} if watcher and step in record else {}
        lr = [lr_at(config, step) for config in configs]
        if c.steps:
            before = stack.values.clone() if seen else None
            scale = [
                config.clip / norm if config.clip is not None and norm > config.clip else 1.0
                for config, norm in zip(configs, norms, strict=True)
            ]
            stack.move(lr, scale, step + 1)
            if watcher and before is not None:
                for i in seen.keys() - bad.keys():
                    watcher.add_update_ratio(i, seen[i][0], before[i])
        evaluations: Sequence[float | None] = [None] * len(configs)
        if held_out is not None and step in evaluated:
            evaluations = [finite_or_inf(it) for it in stack.evaluate(held_out)]
        for i in list(alive):
            layers, logit_rms = seen.get(i, (None, None))
            held = None if i in bad else evaluations[i]
            yield i, Step(step, losses[i], lr[i], norms[i], layers, held, logit_rms)
            if i in bad:
                yield i, bad[i]
            if i in bad or step + 1 >= c.steps:
                alive.remove(i)
                yield i, Finished(step + 1 if c.steps else 0, "")
        if not alive:
            return
