"""RMSNorm with a gate that the token opens and shuts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RANK = 16
"""Rows of the gate's first matrix, whatever the width is."""


class GatedNorm(nn.Module):
    """y sigmoid(widen SiLU(narrow y)) of y = RMSNorm(x), [..., d] to [..., d]; arXiv:2601.22966."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.narrow = nn.Linear(width, RANK, bias=False)
        self.widen = nn.Linear(RANK, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        return y * torch.sigmoid(self.widen(F.silu(self.narrow(y))))
