"""Deep Delta Learning with one value: a sublayer replaces the stream's part along its output's direction
(arXiv:2601.00417).

k = F(N(x)) / |F(N(x))|,  x+ = x + beta (v - k . x) k,  beta = 2 sigmoid(w . N(x) + b),
v = 4 sigmoid(u . x + c).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...catalog.scheme import Place
from ...config import RunConfig
from ..branches import Dropout
from ..marks import as_is
from ..norms import make_norm
from ..sites import Tap
from ..wire import SublayerContext

EPS = 1e-5
"""Lengths below this do not count as a direction."""


class DeltaWire(nn.Module):
    """One sublayer of Deep Delta Learning, [B, T, D] to [B, T, D]; it starts with beta = 1 and v = 2."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        del place
        self.width, self.branch, self.dropout = config.width, branch, dropout
        self.norm_in = make_norm(config.norm, config.width, config.steps)
        self.gain_step = as_is(nn.Parameter(torch.zeros(config.width)))
        self.gain_step_start = as_is(nn.Parameter(torch.zeros(())))
        self.gain_value = as_is(nn.Parameter(torch.zeros(config.width)))
        self.gain_value_start = as_is(nn.Parameter(torch.zeros(())))

    def forward(self, x: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        x = tap("stream_in", index, x)
        z = tap("branch_in", index, self.norm_in(x))
        f = self.dropout(self.branch(z, tap))
        k = F.rms_norm(f, (self.width,), eps=EPS**2 / self.width)
        step = 2 * torch.sigmoid(z @ self.gain_step + self.gain_step_start)
        value = 4 * torch.sigmoid(x @ self.gain_value + self.gain_value_start)
        along = (k * x).sum(-1) / self.width**0.5
        moved = (step * (value - along) / self.width**0.5).unsqueeze(-1) * k
        skip = tap("skip", index, x)
        return tap("stream_out", index, skip + tap("branch_out", index, moved))
