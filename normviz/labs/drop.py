"""What a trained model loses when one block is left out (layer removal, Sun et al. 2025).

arXiv:2502.05795 measures it on a held-out set; here on batches of steps that training never reached,
which for `prose` come from the text that it was trained on.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..config import RunConfig
from ..data import Task, make_task
from ..nn.flat import Flat
from ..nn.init import initialise
from ..nn.profile import profile
from ..nn.sites import untapped
from ..nn.transformer import Transformer, build
from ..schedule import lr_at
from ..training import Optimizer, backward, update
from .model import batch

BATCHES = 20
BEYOND = 100_000
"""First step of the batches that it is judged by."""


class Skipped(nn.Module):
    """Stands where a block was."""

    def forward(self, state: Tensor, _tap: object, _embedding: Tensor) -> Tensor:
        return state


def measure(config: RunConfig) -> dict[str, float]:
    """`loss` of the whole model; `first`, `middle` and `last`, the increase without that block (the
    middle: mean of all others); `rank`, Spearman's correlation of the increase with the block."""
    model, task = trained(config)
    whole = held_out(model, task)
    costs = []
    for b in range(config.depth):
        block, model.blocks[b] = model.blocks[b], Skipped()
        costs.append(held_out(model, task) - whole)
        model.blocks[b] = block
    inner = costs[1:-1]
    return {
        "loss": whole, "first": costs[0], "last": costs[-1], "middle": sum(inner) / len(inner),
        "rank": spearman(costs),
    }  # fmt: skip


def trained(config: RunConfig) -> tuple[Transformer, Task]:
    """The model that `train` ends with."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    profile(model, config, task)
    flat = Flat(model, torch.device("cpu"))
    optimizer = Optimizer(config, flat)
    for step in range(config.steps):
        backward(model, flat, task, step, untapped)
        norm = float(torch.linalg.vector_norm(flat.grads))
        update(config, optimizer, flat, lr_at(config, step), norm)
    return model, task


@torch.no_grad()
def held_out(model: Transformer, task: Task) -> float:
    """Mean loss over batches of steps that training never reached."""
    losses = [model.loss(*batch(task, BEYOND + i)) for i in range(BATCHES)]
    return float(torch.stack(losses).mean())


def spearman(costs: list[float]) -> float:
    """Rank correlation of numbers without ties with their places."""
    order = torch.tensor(costs).argsort().argsort().double()
    place = torch.arange(len(costs)).double()
    return float(torch.corrcoef(torch.stack([order, place]))[0, 1])
