"""Classes of LayerNorm's variants."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def groups_of(width: int) -> int:
    """The largest of 4, 2 and 1 groups that divides a width into groups of two channels or more.

    A group of one channel would be its own mean, and centring it would leave nothing.
    """
    return next(g for g in (4, 2, 1) if (width % g == 0 and width // g > 1) or g == 1)


class GroupNorm(nn.GroupNorm):
    """GroupNorm of each token by itself, [..., d] to [..., d]; arXiv:1803.08494."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__(groups_of(width), width, eps)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.reshape(-1, x.shape[-1])).view(x.shape)


class LayerNorm1p(nn.Module):
    """LayerNorm scaled by 1 + offset, [..., d] to [..., d]; transformers, models/nemotron.

    Not called weight: lanes share the values of parameters of one name, and weights start at 1.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.offset = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.offset.shape, 1.0 + self.offset, self.bias, self.eps)
