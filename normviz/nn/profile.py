"""Admin's profiling pass: learned skip gains that start from the variances of one forward pass."""

from __future__ import annotations

import torch
from torch import Tensor

from ..catalog import SCHEMES
from ..config import RunConfig
from ..data import Task
from .transformer import Transformer
from .wire import Wire


class Profiler:
    """A tap that sets omega of each sublayer when the forward pass gets there.

    omega_1 = 1 and omega_{i+1} = sqrt(Var(omega_i x) + Var(F_i)), as the authors' code does
    (Liu et al. 2020, arXiv:2004.08249).
    """

    def __init__(self, model: Transformer) -> None:
        blocks = model.blocks
        self.wires: list[Wire] = [w for block in blocks for w in (block.attention, block.ffn)]  # pyright: ignore
        self.omega = 1.0
        self.variance = 0.0

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        if site == "stream_in":
            self.wires[index].skip_gain.weight.fill_(self.omega)
        elif site == "skip":
            self.variance = x.var().item()
        elif site == "branch_out":
            self.omega = (self.variance + x.var().item()) ** 0.5
        return x


@torch.no_grad()
def profile(model: Transformer, config: RunConfig, task: Task) -> None:
    """Set the skip gains of a scheme that asks for it, from the first batch; others stay."""
    if SCHEMES[config.scheme].profiled:
        inputs, _ = task.tensors(0, torch.device("cpu"))
        model(inputs, Profiler(model))
