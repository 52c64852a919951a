"""ResiDual: a Post-LN stream that branches read, and a second one that only adds up (arXiv:2304.14802).

x+ = N(x + F(x)),  r+ = r + F(x),  and at the end x + N(r).
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


class Dual(OneStream):
    """The state is x and r, side by side."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.norm_dual = make_norm(config.norm, config.width, config.steps)

    def enter(self, x: Tensor) -> Tensor:
        return torch.cat((x, x), -1)

    def leave(self, state: Tensor) -> Tensor:
        x, r = state.split(self.width, -1)
        return x + self.norm_dual(r)


class DualWire(nn.Module):
    """One sublayer of ResiDual, [B, T, 2 D] to [B, T, 2 D]."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        del place
        self.width, self.branch, self.dropout = config.width, branch, dropout
        self.norm_main = make_norm(config.norm, config.width, config.steps)

    def forward(self, state: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        x, r = tap("stream_in", index, state).split(self.width, -1)
        f = tap("branch_out", index, self.dropout(self.branch(tap("branch_in", index, x), tap)))
        x = self.norm_main(tap("skip", index, x) + f)
        return tap("stream_out", index, torch.cat((x, r + f), -1))
