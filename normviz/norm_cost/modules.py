"""The module of each variant, [..., width] to [..., width]."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..nn.norms import BUILDERS
from .variants import CONTROL, REFERENCE

EPS = 1e-5
"""The same eps for all variants that have one, because eps is not compared."""


class HandWrittenRMSNorm(nn.Module):
    """RMSNorm in elementary operations, [..., d] to [..., d]; arXiv:1910.07467."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class _RMSNorm(torch.autograd.Function):
    """y = w x r with r = (mean(x^2) + eps)^(-1/2), and its gradient written out.

    With g = w dy: dx = r g - x r^3 mean(g x), dw = sum over tokens of dy x r.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        r = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, r)
        return (x * r).mul_(weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        (dy,) = grads
        x, weight, r = ctx.saved_tensors
        g = dy * weight
        lean = (g * x).mean(-1, keepdim=True).mul_(r.pow(3))
        dx = torch.addcmul(g.mul_(r), x, lean, value=-1.0)
        dw = torch.mv((dy * x).flatten(0, -2).t(), r.flatten())
        return dx, dw, None


class FusedRMSNorm(nn.Module):
    """RMSNorm as one function with its own gradient, [..., d] to [..., d]; arXiv:1910.07467."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return _RMSNorm.apply(x, self.weight, self.eps)  # pyright: ignore (apply is untyped)


# A copy, because another norm replaces LayerNorm in the original while models are timed.
WAYS = {
    **BUILDERS,
    CONTROL: BUILDERS[REFERENCE],
    "rmsnorm_hand": HandWrittenRMSNorm,
    "rmsnorm_fused": FusedRMSNorm,
}


def build(variant: str, width: int) -> nn.Module:
    """A new module of a variant. Raises KeyError if it is unknown."""
    return WAYS[variant](width, EPS)
