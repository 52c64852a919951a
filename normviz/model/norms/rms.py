"""RMSNorm with a zero-centred scale, on a part of the channels, of a recentred token, of scaled channels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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
