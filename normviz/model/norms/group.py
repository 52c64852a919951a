"""LayerNorm inside groups of a token's channels."""

from __future__ import annotations

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
