"""Dropout that draws from its own generator, so that training never touches the global one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zeroes each number with probability `p` and divides the rest by 1 - p."""

    def __init__(self, p: float, seed: int) -> None:
        super().__init__()
        self.p = p
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        if self.p == 0.0 or not self.training:
            return x
        kept = torch.rand(x.shape, generator=self.generator) >= self.p
        return x * kept.to(x.device) / (1.0 - self.p)
