"""BatchNorm over all positions of all sequences."""

from __future__ import annotations

from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """BatchNorm of each channel over all tokens, [..., d] to [..., d]; arXiv:1502.03167.

    While training it uses the batch's own mean and variance; in evaluation the running ones.
    Raises ValueError while training on a single token, which has no variance.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__(width, eps)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.reshape(-1, x.shape[-1])).view(x.shape)
