"""Classes of the squashing functions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DyT(nn.Module):
    """weight tanh(alpha x) + bias, [..., d] to [..., d]; arXiv:2503.10622."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        del eps
        self.alpha = nn.Parameter(torch.full((1,), 0.5))
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.bias, self.weight, torch.tanh(self.alpha * x))


class Derf(nn.Module):
    """weight erf(alpha x + shift) + bias, [..., d] to [..., d]; arXiv:2512.10938."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        del eps
        self.alpha = nn.Parameter(torch.full((1,), 0.5))
        self.shift = nn.Parameter(torch.zeros(1))
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.addcmul(self.shift, self.alpha, x)
        return torch.addcmul(self.bias, self.weight, torch.erf(inner))


class BHyT(nn.Module):
    """weight tanh(2 * 0.1 * RMSNorm(x)), [..., d] to [..., d]; arXiv:2601.09719."""

    SLOPE = 2.0 * 0.1
    """The paper's lambda over kappa, at the values of the authors' code."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        inner = F.rms_norm(x, self.weight.shape, eps=self.eps)
        return self.weight * torch.tanh(self.SLOPE * inner)
