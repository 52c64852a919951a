"""How large the logits are before training."""

from __future__ import annotations

import math

import torch

from ...config import RunConfig
from .model import batch, begun


@torch.no_grad()
def measure(config: RunConfig) -> dict[str, float]:
    """`std` of the logits over all positions and symbols, and `excess`, the loss above ln V."""
    model, task = begun(config)
    tokens, targets = batch(task, 0)
    loss = float(model.loss(tokens, targets))
    return {"std": float(model(tokens).std()), "excess": loss - math.log(task.vocabulary)}
