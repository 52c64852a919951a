"""RMSNorm with a gate that the token opens and shuts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RANK = 16
"""Rows of the gate's first matrix, whatever the width is."""


class GatedNorm(nn.Module):
    """y sigmoid(up SiLU(down y)) of y = RMSNorm(x), [..., d] to [..., d]; arXiv:2601.22966, section 3.4."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.gate_down = nn.Linear(width, RANK, bias=False)
        self.gate_up = nn.Linear(RANK, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        return y * torch.sigmoid(self.gate_up(F.silu(self.gate_down(y))))
