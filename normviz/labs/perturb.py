"""How much a small random change of all blocks' weights changes the output (Liu et al. 2020).

arXiv:2004.08249, theorem 2: Var[F(x, W) - F(x, W*)], here with each matrix of every block changed
by Gaussian noise of a thousandth of its own standard deviation. The change is divided by that of the
weights, so it does not depend on their size.
"""

from __future__ import annotations

import torch

from ..config import RunConfig
from .model import batch, begun, output

SIZE = 1e-3


def measure(config: RunConfig) -> dict[str, float]:
    """`change`: mean square of the output's change over the square of the relative noise."""
    model, task = begun(config)
    tokens, _ = batch(task, 0)
    before = output(model, tokens)
    generator = torch.Generator().manual_seed(config.init_seed)
    with torch.no_grad():
        for name, p in sorted(model.blocks.named_parameters()):
            if p.dim() == 2 and "norm" not in name:
                noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
                p.add_(SIZE * p.std() * noise)
    return {"change": float((output(model, tokens) - before).square().mean() / SIZE**2)}
