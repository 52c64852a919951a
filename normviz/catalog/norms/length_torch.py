"""Classes of the norms of length."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ScaleNorm(nn.Module):
    """A learned length times x over its own, [..., d] to [..., d]; arXiv:1910.05895."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.full((1,), width**0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * F.normalize(x, dim=-1, eps=self.eps)


class UnitLength(nn.Module):
    """x over its length, [..., d] to [..., d]; after arXiv:2410.01131."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        del width
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1, eps=self.eps)
