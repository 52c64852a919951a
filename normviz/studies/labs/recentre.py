"""LayerNorm against RMSNorm on the same weights, with and without zero-mean streams.

Jiang et al. 2023, arXiv:2305.14858: where everything that writes to the stream writes vectors of
mean zero, both norms are one function.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...config import RunConfig
from ...model.transformer import Transformer
from .model import batch, begun

EPS = 1e-5
NOISE = 0.1
"""Standard deviation of what is added to each parameter."""


def measure(config: RunConfig) -> dict[str, float]:
    """Largest difference of the logits over the largest logit: `folded` and `naive`."""
    return {"folded": gap(config, True), "naive": gap(config, False)}


def gap(config: RunConfig, folded: bool) -> float:
    """Between the two norms, on weights of which no bias is zero and no scale one."""
    layer, rms = (
        logits(config.replace(norm=norm), folded) for norm in ("layernorm_nobias", "rmsnorm")
    )
    return float((layer - rms).abs().max() / layer.abs().max())


@torch.no_grad()
def logits(config: RunConfig, folded: bool) -> Tensor:
    """Logits [B, T, V] of the model with perturbed weights, `folded` or as it is."""
    model, task = begun(config)
    generator = torch.Generator().manual_seed(config.init_seed)
    for _, p in sorted(model.named_parameters()):
        p.add_(NOISE * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    for module in model.modules():
        if isinstance(module, nn.RMSNorm):
            module.eps = EPS  # LayerNorm's
    if folded:
        recentre(model)
    return model(batch(task, 0)[0])


def recentre(model: Transformer) -> None:
    """Take the mean out of all that writes to the stream."""
    for embedding in filter(None, (model.tokens, model.positions)):
        embedding.weight.sub_(embedding.weight.mean(1, keepdim=True))
    for name, p in model.blocks.named_parameters():
        if name.endswith(("attention.branch.out.weight", "ffn.branch.down.weight")):
            p.sub_(p.mean(0, keepdim=True))
        elif name.endswith(("attention.branch.out.bias", "ffn.branch.down.bias")):
            p.sub_(p.mean())
