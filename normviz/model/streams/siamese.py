"""SiameseNorm: a Post-LN and a Pre-LN stream that share every branch (arXiv:2602.08064).

O = F(N_in(X + N_y(Y))),  X+ = N_x(X + O / sqrt(2 b)),  Y+ = Y + O,  and at the end N(N(X) + N(Y)).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...catalog.scheme import Place
from ...config import RunConfig
from ..branches import Dropout
from ..norms import make_norm
from ..sites import Tap
from ..wire import SublayerContext
from .one import OneStream


class Siamese(OneStream):
    """The state is X and Y, side by side; the last norm of all is the scheme's final norm."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.norm_x = make_norm(config.norm, config.width, config.steps)
        self.norm_y = make_norm(config.norm, config.width, config.steps)

    def enter(self, x: Tensor) -> Tensor:
        return torch.cat((x, x), -1)

    def leave(self, state: Tensor) -> Tensor:
        x, y = state.split(self.width, -1)
        return self.norm_x(x) + self.norm_y(y)


class SiameseWire(nn.Module):
    """One sublayer of SiameseNorm, [B, T, 2 D] to [B, T, 2 D]."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        self.width, self.branch, self.dropout = config.width, branch, dropout
        self.share = (2 * place.block) ** -0.5
        self.norm_in = make_norm(config.norm, config.width, config.steps)
        self.norm_x = make_norm(config.norm, config.width, config.steps)
        self.norm_y = make_norm(config.norm, config.width, config.steps)

    def forward(self, state: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        x, y = tap("stream_in", index, state).split(self.width, -1)
        z = tap("branch_in", index, self.norm_in(x + self.norm_y(y)))
        out = self.dropout(self.branch(z, tap))
        added = tap("branch_out", index, out * self.share)
        x = self.norm_x(tap("skip", index, x) + added)
        return tap("stream_out", index, torch.cat((x, y + out), -1))
