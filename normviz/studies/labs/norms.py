"""How many norm operations one forward pass makes, counted while it makes them."""

from __future__ import annotations

import torch
from torch import nn

from ...config import RunConfig
from .model import batch, begun

INSIDE = ("qk_norm", "v_norm")
"""Norms of queries, keys and values, which no placement of the stream's norms counts."""


@torch.no_grad()
def measure(config: RunConfig) -> dict[str, float]:
    """`norms`: calls of norms on the stream or on branches."""
    model, task = begun(config)
    calls: list[str] = []
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if "norm" in last and last not in INSIDE and not isinstance(module, nn.Identity):
            module.register_forward_hook(lambda *_, name=name: calls.append(name))
    model(batch(task, 0)[0])
    return {"norms": float(len(calls))}
