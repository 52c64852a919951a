"""Classes of RMSNorm's variants."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .rms import RANK


class RMSNorm1p(nn.Module):
    """RMSNorm scaled by 1 + offset, [..., d] to [..., d]; arXiv:2403.08295.

    Not called weight: lanes share the values of parameters of one name, and weights start at 1.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.offset = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.offset.shape, 1.0 + self.offset, self.eps)


class PartialRMSNorm(nn.Module):
    """RMSNorm by the RMS of the first d // 16 channels, at least one; arXiv:1910.07467.

    [..., d] to [..., d]. eps is added to the RMS and not under the root, as in the authors' code.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.part, self.eps = max(1, width // 16), eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        part = x[..., : self.part]
        # vector_norm has gradient 0 at a zero vector, where a square root would have NaN.
        rms = torch.linalg.vector_norm(part, dim=-1, keepdim=True) / self.part**0.5
        return self.weight * (x / (rms + self.eps))


class CRMSNorm(nn.Module):
    """RMSNorm of a zero-mean token of d + 1 channels of which d are stored; arXiv:2305.14858.

    [..., d] to [..., d]. The channel that is left out is minus the sum of the others, so on any
    stream of width d this is the authors' function, and it equals the first d channels of
    LayerNorm without scale and shift on the completed token.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.channels, self.eps = width + 1, eps

    def forward(self, x: Tensor) -> Tensor:
        squares = x.square().sum(-1, keepdim=True) + x.sum(-1, keepdim=True).square()
        return x * torch.rsqrt(squares / self.channels + self.eps)


class PreAffineRMSNorm(nn.Module):
    """RMSNorm(before * x), [..., d] to [..., d]; arXiv:2601.22966, section 3.3."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.before = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(self.before * x, self.weight.shape, self.weight, self.eps)


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
