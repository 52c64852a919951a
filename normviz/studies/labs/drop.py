"""What a trained model loses when the branches of one block are left out (layer removal, Sun et al. 2025).

arXiv:2502.05795 removes whole layers. Here attention and FFN of a block are set to zero and the skip path
stays with the norms on it, because a whole block of a Post-type placement has norms that the model needs. The
loss is of text or data that training never reads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.data import Task, make_task
from ...model.sites import untapped
from ...model.transformer import Transformer
from ...training.loop import begin, train

ROWS = 128
"""Sequences of the held-out batch."""


class Without:
    """A tap that sets both branches of a block to zero."""

    def __init__(self, block: int) -> None:
        self.sublayers = (2 * block, 2 * block + 1)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        return torch.zeros_like(x) if site == "branch_out" and index in self.sublayers else x


class Sizes:
    """A tap that keeps the stream's RMS after the embedding and each block."""

    def __init__(self) -> None:
        self.rms: list[float] = []

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index
        if site == "stream":
            self.rms.append(float(x.square().mean().sqrt()))
        return x


def measure(config: RunConfig) -> dict[str, float]:
    """`loss` of the whole model; the increase without the branches of the `first` block and, on average, of
    the `deep` half and of all blocks (`mean`); `rank`, Spearman's correlation of the increase with the block;
    `growth`, the stream's RMS after the last block over that after the first.

    Raises ValueError for a task of which no part is held out.
    """
    held_out = make_task(config.replace(batch=ROWS)).held_out_tensors(torch.device("cpu"))
    if held_out is None:
        raise ValueError(f"training reads all of the task {config.task!r}, so nothing is held out")
    model, _ = trained(config)
    with torch.no_grad():
        whole = float(model.loss(*held_out, untapped))
        costs = [float(model.loss(*held_out, Without(b))) - whole for b in range(config.depth)]
        sizes = Sizes()
        model(held_out[0], sizes)
    deep = costs[config.depth // 2 :]
    return {
        "loss": whole, "first": costs[0], "deep": sum(deep) / len(deep), "rank": spearman(costs),
        "mean": sum(costs) / len(costs), "growth": sizes.rms[-1] / sizes.rms[1],
    }  # fmt: skip


def trained(config: RunConfig) -> tuple[Transformer, Task]:
    """The model that `train` ends with, on the CPU, and its task."""
    begun = begin(config)
    for _ in train(config.replace(device="cpu"), record=(), begun=begun):
        pass
    return begun


def spearman(costs: list[float]) -> float:
    """Rank correlation of numbers without ties with their places."""
    order = torch.tensor(costs).argsort().argsort().double()
    place = torch.arange(len(costs)).double()
    return float(torch.corrcoef(torch.stack([order, place]))[0, 1])
