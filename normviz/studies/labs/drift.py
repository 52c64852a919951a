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
from ...training.probes import Recorder
from .model import held_out

CHECKS = 20
"""Stretches of the run from whose ends the change is taken."""


def measure(config: RunConfig) -> dict[str, float]:
    """`drift`: the change of the inputs' statistics from one check to the next, as an RMS over channels,
    mean over branches and checks. `loss` on the held-out batch after the last step, at most chance.

    Raises ValueError for a task of which no part is held out.
    """
    batch, (model, task) = held_out(config), begin(config)
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
    """[branches, 2, D] the means and standard deviations of the channels of each branch's input, over its
    RMS."""
    tap = Recorder(("branch_in",))
    model(tokens, tap)
    return torch.stack([of_channels(x) for x in tap.seen["branch_in"]])


def of_channels(x: Tensor) -> Tensor:
    """[2, D] the mean and standard deviation of each channel of x [..., D], over the RMS of x."""
    channels = x.flatten(0, -2).double()
    both = torch.stack((channels.mean(0), channels.std(0)))
    return both / channels.square().mean().sqrt()
