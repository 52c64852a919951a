"""A model as `train` would start with it, for labs to look into."""

from __future__ import annotations

import torch
from torch import Tensor

from ...config import RunConfig
from ...model.data import Task
from ...model.transformer import Transformer
from ...training.loop import begin


def begun(config: RunConfig) -> tuple[Transformer, Task]:
    """The model in float64, and its task."""
    model, task = begin(config)
    return model.double(), task


def batch(task: Task, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a step."""
    return task.tensors(step, torch.device("cpu"))


class Final:
    """A tap that keeps what the output head sees, [B, T, D]."""

    def __init__(self) -> None:
        self.input = torch.empty(0)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index
        if site == "final":
            self.input = x
        return x


@torch.no_grad()
def output(model: Transformer, tokens: Tensor) -> Tensor:
    """What the output head sees, [B, T, D]."""
    tap = Final()
    model(tokens, tap)
    return tap.input
