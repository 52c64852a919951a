"""The first block's gradient as the embedding shrinks (Takase et al. 2023, arXiv:2312.16903)."""

from __future__ import annotations

import math

import torch

from ...config import RunConfig
from .model import batch, begun, gradient_norm

FACTORS = (0.02, 0.1, 1.0)
"""Standard deviations that the token embedding gets; positions are scaled with it."""


def measure(config: RunConfig) -> dict[str, float]:
    """`at_S`: L2 norm of the first block's parameter gradient; `slope_small` and `slope_large`, of
    its logarithm over that of the standard deviation, from the first to the second and on to the third."""
    norms = [gradient(config, factor) for factor in FACTORS]
    readings = {f"at_{factor:g}": norm for factor, norm in zip(FACTORS, norms, strict=True)}
    for name, i in (("slope_small", 0), ("slope_large", 1)):
        rise = math.log(norms[i + 1] / norms[i])
        readings[name] = rise / math.log(FACTORS[i + 1] / FACTORS[i])
    return readings


def gradient(config: RunConfig, std: float) -> float:
    """L2 norm of the first block's gradient with embeddings of this standard deviation."""
    model, task = begun(config)
    with torch.no_grad():
        scale = std / model.tokens.weight.std()
        for embedding in filter(None, (model.tokens, model.positions)):
            embedding.weight.mul_(scale)
    model.loss(*batch(task, 0)).backward()
    return gradient_norm(model.blocks[0])
