"""How alike the streams after neighbouring blocks of a trained model are, and how much gradient reaches its
first block."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from ...config import RunConfig
from .drop import trained
from .model import batch


class Streams:
    """A tap that keeps the stream [B, T, D] after the embedding and each block."""

    def __init__(self) -> None:
        self.after: list[Tensor] = []

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index
        if site == "stream":
            self.after.append(x)
        return x


def measure(config: RunConfig) -> dict[str, float]:
    """Of the model at the end of its steps, on a batch after the last one: the cosine of a position's stream
    after a block with that after the block before, in the mean over positions and over the `early` and the
    `deep` half of the blocks; `gradient`, the L2 norm of the gradient of the first block's parameters over
    that of the last one's. Needs two blocks or more."""
    model, task = trained(config)
    tap = Streams()
    model.loss(*batch(task, config.steps), tap).backward()
    with torch.no_grad():
        pairs = zip(tap.after[1:], tap.after[2:], strict=False)
        cosines = [float(cosine_similarity(a, b, dim=-1).mean()) for a, b in pairs]
    half = (len(cosines) + 1) // 2
    first, last = (norm_of(model.blocks[b]) for b in (0, -1))
    return {
        "early": sum(cosines[:half]) / half,
        "deep": sum(cosines[-half:]) / half,
        "gradient": first / last,
    }


def norm_of(block: torch.nn.Module) -> float:
    """L2 norm of the gradient of a block's parameters."""
    squares = [p.grad.square().sum() for p in block.parameters() if p.grad is not None]
    return float(torch.stack(squares).sum().sqrt())
