"""GeoNorm: a sublayer turns the stream on its sphere instead of adding to it (arXiv:2601.22095).

v = F(x) - x (F(x) . x) / |x|^2,  theta = min(|v| / |x|, pi/4),  phi = min((w theta + s) / b, pi/4),
x+ = x cos(phi) + |x| v / |v| sin(phi), with learned numbers w and s, in block b.
"""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor, nn

from ...catalog.scheme import Place
from ...config import RunConfig
from ..branches import Dropout
from ..marks import as_is
from ..sites import Tap
from ..wire import SublayerContext

EPS = 1e-8


class GeodesicWire(nn.Module):
    """One sublayer of GeoNorm, [B, T, D] to [B, T, D]; every token keeps its length."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        del config
        self.branch, self.dropout, self.block = branch, dropout, place.block
        self.gain_angle = as_is(nn.Parameter(torch.ones(())))
        self.gain_shift = as_is(nn.Parameter(torch.zeros(())))

    def forward(self, x: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        x = tap("stream_in", index, x)
        f = self.dropout(self.branch(tap("branch_in", index, x), tap))
        size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        v = f - (x * f).sum(-1, keepdim=True) / (size + EPS) ** 2 * x
        length = torch.linalg.vector_norm(v, dim=-1, keepdim=True) + EPS
        angle = (length / (size + EPS)).clamp(max=pi / 4)
        angle = ((self.gain_angle * angle + self.gain_shift) / self.block).clamp(max=pi / 4)
        skip = tap("skip", index, x * angle.cos())
        turned = tap("branch_out", index, v / length * size * angle.sin())
        return tap("stream_out", index, skip + turned)
