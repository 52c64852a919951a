"""The gain of all mixtures of hyper-connections together, after training.

The copies of a token pass one n x n matrix in each sublayer. Their product is what a branch of the first
block's reaches the output by. mHC, arXiv:2512.24880, measures its largest absolute row sum, which bounds the
growth of the copies, and column sum, which bounds that of their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.streams.hyper import COPIES, HyperWire
from ...model.streams.manifold import ManifoldWire
from .model import batch, trained


class Mixtures:
    """A tap that keeps the product of all mixtures so far, [B, T, n, n]."""

    def __init__(self, wires: Sequence[HyperWire | ManifoldWire]) -> None:
        self.wires = wires
        self.product = torch.eye(COPIES, dtype=torch.float64)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        if site == "stream_in":
            self.product = self.wires[index].mixture(x).double() @ self.product
        return x


@torch.no_grad()
def measure(config: RunConfig) -> dict[str, float]:
    """`forward` and `backward`: the largest absolute row sum and column sum of the product of all
    mixtures, mean over the tokens of a batch. `loss` of that batch.

    Raises ValueError for a placement without hyper-connections.
    """
    with torch.enable_grad():
        model, task = trained(config)
    both = (wire for block in model.blocks for wire in (block.attention, block.ffn))
    wires = [wire for wire in both if isinstance(wire, HyperWire | ManifoldWire)]
    if not wires:
        raise ValueError(f"{config.scheme!r} mixes no copies of the stream")
    tap = Mixtures(wires)
    loss = float(model.loss(*batch(task, config.steps), tap))
    sizes = tap.product.abs()
    return {
        "forward": float(sizes.sum(-1).amax(-1).mean()),
        "backward": float(sizes.sum(-2).amax(-1).mean()),
        "loss": loss,
    }
