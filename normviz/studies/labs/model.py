"""A model as `train` starts or ends with it, and what several labs read off one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...config import RunConfig
from ...model.data import Task, make_task
from ...model.transformer import Transformer
from ...training.loop import begin, train
from ...training.probes import Recorder

CPU = torch.device("cpu")
ROWS = 128
"""Sequences of the held-out batch of models that are judged by one."""


def begun(config: RunConfig) -> tuple[Transformer, Task]:
    """The model in float64 before its first step, and its task."""
    model, task = begin(config)
    return model.double(), task


def trained(config: RunConfig) -> tuple[Transformer, Task]:
    """The model that `train` ends with, on the CPU, and its task."""
    begun = begin(config)
    for _ in train(config.replace(device="cpu"), record=(), begun=begun):
        pass
    return begun


def batch(task: Task, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a step."""
    return task.tensors(step, CPU)


def held_out(config: RunConfig) -> tuple[Tensor, Tensor]:
    """Inputs and targets of the batch that training never reads. Raises ValueError where it reads all."""
    batch = make_task(config).held_out_tensors(CPU)
    if batch is None:
        raise ValueError(f"training reads all of the task {config.task!r}, so nothing is held out")
    return batch


@torch.no_grad()
def output(model: Transformer, tokens: Tensor) -> Tensor:
    """What the output head sees, [B, T, D]."""
    tap = Recorder(("final",))
    model(tokens, tap)
    return tap.seen["final"][0]


def gradient_norm(block: nn.Module) -> float:
    """L2 norm of the gradient of a block's parameters."""
    squares = [p.grad.square().sum() for p in block.parameters() if p.grad is not None]
    return float(torch.stack(squares).sum().sqrt())
