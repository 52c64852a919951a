"""What a trained model loses when the branches of one block are left out (layer removal, Sun et al. 2025).

arXiv:2502.05795 removes whole layers. Here attention and FFN of a block are set to zero and the skip path
stays with the norms on it, because a whole block of a Post-type placement has norms that the model needs. The
loss is of text or data that training never reads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...config import RunConfig
from ...training.probes import Recorder
from .model import ROWS, held_out, trained


class Without:
    """A tap that sets both branches of a block to zero."""

    def __init__(self, block: int) -> None:
        self.sublayers = (2 * block, 2 * block + 1)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        return torch.zeros_like(x) if site == "branch_out" and index in self.sublayers else x


def measure(config: RunConfig) -> dict[str, float]:
    """`loss` of the whole model; the increase without the branches of the `first` block and, on average, of
    the `deep` half and of all blocks (`mean`); `rank`, Spearman's correlation of the increase with the block;
    `growth`, the stream's RMS after the last block over that after the first.

    Raises ValueError for a task of which no part is held out.
    """
    batch, tap = held_out(config.replace(batch=ROWS)), Recorder(("stream",))
    model, _ = trained(config)
    with torch.no_grad():
        whole = float(model.loss(*batch, tap))
        costs = [float(model.loss(*batch, Without(b))) - whole for b in range(config.depth)]
    sizes = [float(x.square().mean().sqrt()) for x in tap.seen["stream"]]
    deep = costs[config.depth // 2 :]
    return {
        "loss": whole, "first": costs[0], "deep": sum(deep) / len(deep), "rank": spearman(costs),
        "mean": sum(costs) / len(costs), "growth": sizes[-1] / sizes[1],
    }  # fmt: skip


def spearman(costs: list[float]) -> float:
    """Rank correlation of numbers without ties with their places."""
    order = torch.tensor(costs).argsort().argsort().double()
    place = torch.arange(len(costs)).double()
    return float(torch.corrcoef(torch.stack([order, place]))[0, 1])
