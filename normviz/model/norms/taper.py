"""RMSNorm that gives way to a fixed scale during the run."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MEASURED, TAPERED = 0.05, 0.4
"""Shares of the run: up to the first the norm measures, from the second on only the scale is left."""
KEPT = 0.99
"""The decay of the averages that the norm measures."""


class TaperNorm(nn.Module):
    """g weight x / r + (1 - g) factor tapered x, [..., d] to [..., d]; arXiv:2602.10408.

    r is the RMS of a token. While g is 1, running averages measure the factor for which
    factor weight x comes closest to weight x / r in least squares. Then `tapered` starts from the
    weight, and g falls along a cosine. `steps` is that of the run, and each pass of training
    is one; with 0, g stays 1.
    """

    gate: Tensor
    factor: Tensor
    averages: Tensor

    def __init__(self, width: int, eps: float, steps: int) -> None:
        super().__init__()
        self.eps, self.steps, self.passes = eps, steps, 0
        self.weight = nn.Parameter(torch.ones(width))
        self.tapered = nn.Parameter(torch.ones(width))
        self.register_buffer("gate", torch.ones(()))
        self.register_buffer("factor", torch.ones(()))
        self.register_buffer("averages", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.training and torch.is_grad_enabled() and self.steps:
            self.advance(x)
        normed = F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        scaled = self.factor * self.tapered * x
        return self.gate * normed + (1.0 - self.gate) * scaled

    @torch.no_grad()
    def advance(self, x: Tensor) -> None:
        """Measure tokens [..., d], or move the gate: what one pass of training does."""
        first = max(1, round(MEASURED * self.steps))
        last = max(first + 1, round(TAPERED * self.steps))
        self.passes += 1
        if self.passes <= first:
            squares = (self.weight * x).square().sum(-1)
            rms = (x.square().mean(-1) + self.eps).sqrt()
            self.averages.lerp_(torch.stack(((squares / rms).mean(), squares.mean())), 1.0 - KEPT)
            return
        if self.passes == first + 1:
            self.factor.copy_(self.averages[0] / (self.averages[1] + 1e-12))
            self.tapered.copy_(self.weight)
        share = min(1.0, (self.passes - first) / (last - first))
        self.gate.fill_(0.5 * (1.0 + math.cos(math.pi * share)))
