"""How far the inputs of branches drift in training: internal covariate shift.

Ioffe and Szegedy 2015, arXiv:1502.03167, call so the change in the distribution of a layer's inputs that
comes from the change of earlier parameters. Here it is the change of each channel's mean and standard
deviation on one batch that training never reads. Both are in units of the input's RMS, so that a norm does
not lower them by its scale alone.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.transformer import Transformer
from ...training.events import Step
from ...training.loop import begin, train

CHECKS = 20
"""Stretches of the run from whose ends the change is taken."""


class Inputs:
    """A tap that keeps each branch input's statistics, [2, D]: means and standard deviations of its
    channels over its RMS."""

    def __init__(self) -> None:
        self.statistics: list[Tensor] = []

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index
        if site == "branch_in":
            channels = x.detach().flatten(0, -2).double()
            both = torch.stack((channels.mean(0), channels.std(0)))
            self.statistics.append(both / channels.square().mean().sqrt())
        return x


def measure(config: RunConfig) -> dict[str, float]:
    """`drift`: the change of the inputs' statistics from one check to the next, as an RMS over channels,
    mean over branches and checks. `loss` on the held-out batch after the last step, at most chance.

    Raises ValueError for a task of which no part is held out.
    """
    model, task = begin(config)
    batch = task.held_out_tensors(torch.device("cpu"))
    if batch is None:
        raise ValueError(f"training reads all of the task {config.task!r}, so nothing is held out")
    stride, checks = max(1, config.steps // CHECKS), [statistics(model, batch[0])]
    for event in train(config.replace(device="cpu"), record=(), begun=(model, task)):
        if isinstance(event, Step) and (event.step + 1) % stride == 0:
            checks.append(statistics(model, batch[0]))
    changes = torch.stack(
        [(b - a).square().sum(1).mean(-1).sqrt().mean() for a, b in pairwise(checks)]
    )
    with torch.no_grad():
        loss = float(model.loss(*batch))
    return {
        "drift": float(changes.mean()),
        "loss": min(loss, task.chance) if loss == loss else task.chance,
    }


@torch.no_grad()
def statistics(model: Transformer, tokens: Tensor) -> Tensor:
    """[branches, 2, D] of all branches' inputs, over their RMS."""
    tap = Inputs()
    model(tokens, tap)
    return torch.stack(tap.statistics)
