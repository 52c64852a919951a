"""RMSNorm whose scale depends on the token."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SeeDNorm(nn.Module):
    """(weight + tanh(x . beta) alpha) RMSNorm(x), [..., d] to [..., d]; arXiv:2510.22777."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.alpha = nn.Parameter(torch.ones(width))
        self.beta = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        lean = torch.tanh(x @ self.beta).unsqueeze(-1)
        scale = torch.addcmul(self.weight, lean, self.alpha)
        return scale * F.rms_norm(x, self.weight.shape, eps=self.eps)
