"""How much one optimizer step changes the model's output: the model update of Wang et al. 2022.

arXiv:2203.00555, section 3 and figure 5: RMS over all positions and channels of F(x, theta_1) -
F(x, theta_0), where F is what the output head sees and x the batch of the step.
"""

from __future__ import annotations

import copy

import torch

from ...config import RunConfig
from .model import batch, begun, output

SGD_RATE, ADAM_RATE = 1e-2, 1e-3


def measure(config: RunConfig) -> dict[str, float]:
    """RMS of the change after one step: `sgd` and `adam` of all parameters, at 0.01 and 0.001;
    `sgd_matrices` of the blocks' matrices alone, which is what the theorem is about."""
    model, task = begun(config)
    tokens, targets = batch(task, 0)
    before = output(model, tokens)
    model.loss(tokens, targets).backward()
    readings = {}
    for name in ("sgd", "adam", "sgd_matrices"):
        moved = copy.deepcopy(model)
        for (own, mine), theirs in zip(moved.named_parameters(), model.parameters(), strict=True):
            is_updated = name != "sgd_matrices" or is_matrix(own, mine)
            mine.grad = theirs.grad.clone() if is_updated and theirs.grad is not None else None
        make = torch.optim.Adam if name == "adam" else torch.optim.SGD
        make(moved.parameters(), ADAM_RATE if name == "adam" else SGD_RATE).step()
        readings[name] = float((output(moved, tokens) - before).square().mean().sqrt())
    return readings


def is_matrix(name: str, p: torch.Tensor) -> bool:
    """Whether a parameter is a matrix of a block's attention or FFN."""
    return name.startswith("blocks.") and p.dim() == 2
