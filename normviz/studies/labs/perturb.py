"""How much a small random change of all blocks' weights changes the output (Liu et al. 2020).

arXiv:2004.08249, theorem 2: Var[F(x, W) - F(x, W*)], here with each matrix of every block changed
by Gaussian noise of a thousandth of its own standard deviation. The change is divided by that of the
weights, so it does not depend on their size. Mean of several draws: one draw varies by tens of times.
"""

from __future__ import annotations

import torch

from ...config import RunConfig
from .model import batch, begun, output

SIZE = 1e-3
"""Noise over the standard deviation of a matrix."""
DRAWS = 16


@torch.no_grad()
def measure(config: RunConfig) -> dict[str, float]:
    """`change`: mean square of the output's change over the square of the relative noise."""
    model, task = begun(config)
    tokens, _ = batch(task, 0)
    before = output(model, tokens)
    matrices = [p for name, p in sorted(model.blocks.named_parameters()) if is_matrix(name, p)]
    first = [p.clone() for p in matrices]
    generator = torch.Generator().manual_seed(config.init_seed)
    changes = []
    for _ in range(DRAWS):
        for p, start in zip(matrices, first, strict=True):
            noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
            p.copy_(start + SIZE * start.std() * noise)
        changes.append((output(model, tokens) - before).square().mean())
    return {"change": float(torch.stack(changes).mean() / SIZE**2)}


def is_matrix(name: str, p: torch.Tensor) -> bool:
    """Whether a parameter of the blocks is a matrix and no norm's."""
    return p.dim() == 2 and "norm" not in name
