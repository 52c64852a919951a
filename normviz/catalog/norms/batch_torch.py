"""Classes of the norms over the batch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .layer_torch import groups_of


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm of each channel over all tokens, [..., d] to [..., d]; arXiv:1502.03167.

    While training it uses the batch's own mean and variance; in evaluation the running ones.
    Raises ValueError while training on a single token, which has no variance.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__(width, eps)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.reshape(-1, x.shape[-1])).view(x.shape)


DECAY = 0.9
"""The decay of both running averages, as in the authors' code."""

WARMUP = 20
"""Steps that use the batch's own quadratic mean. The authors use as many as the warm-up of the learning
rate has, thousands in a run of tens of thousands; 20 is a tenth of a run of 200 steps."""


class PowerNorm(nn.Module):
    """RMSNorm in groups, then every channel over its running quadratic mean; arXiv:2003.07845.

    [..., d] to [..., d]. Each training pass moves the running mean, after it was used, and each
    backward pass moves the running average in its formula. In evaluation it uses the
    running mean as it is.
    """

    power: Tensor
    lean: Tensor

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.groups, self.eps, self.passes = groups_of(width), eps, 0
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("power", torch.ones(width))
        self.register_buffer("lean", torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-1] // self.groups
        x_hat = F.rms_norm(x.reshape(-1, self.groups, size), (size,), eps=self.eps).flatten(1)
        z = self._train(x_hat) if self.training else x_hat * torch.rsqrt(self.power + self.eps)
        return torch.addcmul(self.bias, self.weight, z).view(x.shape)

    def _train(self, x: Tensor) -> Tensor:
        self.passes += 1
        own = x.detach().square().mean(0)
        used = own if self.passes <= WARMUP else self.power.clone()
        z = _Power.apply(x, used, own, self.lean, self.eps)
        if self.passes < WARMUP:
            self.power.lerp_(own, 1 / self.passes)  # and again below: from pass 2 on no plain mean
        self.power.lerp_(own, 1 - DECAY)
        return z


class _Power(torch.autograd.Function):
    """z = x / sqrt(used + eps) on [N, d]; backward subtracts the running mean of g z.

    The gradient is divided by the batch's own quadratic mean also where the forward pass used the
    running one, as in the authors' code; the paper's algorithm uses the running one twice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, used: Tensor, own: Tensor, lean: Tensor, eps: float) -> Tensor:
        z = x * torch.rsqrt(used + eps)
        ctx.save_for_backward(z, torch.rsqrt(own + eps))
        ctx.lean = lean  # not saved as a tensor: backward writes to it
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:  # pyrefly: ignore[bad-override] (the decorator's names)
        z, scale = ctx.saved_tensors
        leant = g - (1 - DECAY) * ctx.lean * z
        ctx.lean += (leant * z).mean(0)
        return scale * leant, None, None, None, None
