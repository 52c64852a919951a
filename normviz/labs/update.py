"""How much one optimizer step changes the model's output: the model update of Wang et al. 2022.

arXiv:2203.00555, section 3 and figure 5: RMS over all positions and channels of F(x, theta_1) -
F(x, theta_0), where F is what the output head sees and x the batch of the step.
"""

from __future__ import annotations

import copy

import torch

from ..config import RunConfig
from .model import batch, begun, output

SGD_RATE, ADAM_RATE = 1e-2, 1e-3


def measure(config: RunConfig) -> dict[str, float]:
    """`sgd` and `adam`: RMS of the change after one step at 0.01 and 0.001."""
    model, task = begun(config)
    tokens, targets = batch(task, 0)
    before = output(model, tokens)
    model.loss(tokens, targets).backward()
    found = {}
    for name in ("sgd", "adam"):
        moved = copy.deepcopy(model)
        for mine, theirs in zip(moved.parameters(), model.parameters(), strict=True):
            mine.grad = None if theirs.grad is None else theirs.grad.clone()
        if name == "sgd":
            torch.optim.SGD(moved.parameters(), SGD_RATE).step()
        else:
            torch.optim.Adam(moved.parameters(), ADAM_RATE).step()
        found[name] = float((output(moved, tokens) - before).square().mean().sqrt())
    return found
