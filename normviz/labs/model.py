"""A model as `train` would start with it, for labs to look into."""

from __future__ import annotations

import torch
from torch import Tensor

from ..config import RunConfig
from ..data import Task, make_task
from ..nn.init import initialise
from ..nn.profile import profile
from ..nn.transformer import Transformer, build


def begun(config: RunConfig) -> tuple[Transformer, Task]:
    """The model in float64, and its task."""
    task = make_task(config)
    model = build(config, task.vocabulary)
    initialise(model, config)
    profile(model, config, task)
    return model.double(), task


def batch(task: Task, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a step."""
    return task.tensors(step, torch.device("cpu"))


class Final:
    """A tap that keeps what the output head sees, [B, T, D]."""

    def __init__(self) -> None:
        self.seen = torch.empty(0)

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        del index
        if site == "final":
            self.seen = x
        return x


@torch.no_grad()
def output(model: Transformer, tokens: Tensor) -> Tensor:
    """What the output head sees, [B, T, D]."""
    tap = Final()
    model(tokens, tap)
    return tap.seen
