"""States that keep the values of earlier blocks: averages over depth, and attention over depth.

The values live in the module while one forward pass lasts; block 0 begins a new list.
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
from .one import OneStream

EPS = 1e-6


class AverageOverDepth(OneStream):
    """DenseFormer: after each block a learned average of its output and of all earlier ones, which
    starts as the output alone (arXiv:2402.02622)."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        starts = (F.one_hot(torch.tensor(b), b + 1).float() for b in range(1, config.depth + 1))
        self.gains = as_is(nn.ParameterList(starts))
        self.values: list[Tensor] = []

    def show(self, state: Tensor, block: int, tap: Tap) -> Tensor:
        if block == 0:
            state = tap("stream", 0, state)
            self.values = [state]
            return state
        self.values.append(state)
        state = torch.einsum("i,ibtd->btd", self.gains[block - 1], torch.stack(self.values))
        return tap("stream", block, state)

    def leave(self, state: Tensor) -> Tensor:
        self.values = []
        return state


class AttentionOverDepth(OneStream):
    """Attention residuals: a sublayer reads an attention-weighted average of the embedding and of all
    earlier branch outputs, by a learned query that starts at 0 (arXiv:2603.15031)."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.values: list[Tensor] = []

    def show(self, state: Tensor, block: int, tap: Tap) -> Tensor:
        state = tap("stream", block, state)
        if block == 0:
            self.values = [state]
        return state

    def connect(self, blocks: nn.ModuleList) -> None:
        wires = [wire for wire in blocks.modules() if isinstance(wire, DepthWire | DeltaDepthWire)]
        for wire in wires:
            wire.over = (self,)  # in a tuple: not a submodule

    def leave(self, state: Tensor) -> Tensor:
        self.values = []
        return state


def attended(values: list[Tensor], query: Tensor) -> Tensor:
    """The average of values [B, T, D], by a softmax of the products of a query [D] and their RMS norms."""
    stacked = torch.stack(values)  # [i, B, T, D]
    keys = F.rms_norm(stacked, stacked.shape[-1:], eps=EPS)
    weights = (keys @ query).softmax(0)
    return (weights.unsqueeze(-1) * stacked).sum(0)


class DepthWire(nn.Module):
    """One sublayer, [B, T, D] to [B, T, D]: v = F(N(h)) joins the values, and the new h is their
    attention-weighted average.

    The next sublayer, or the final norm, reads the new h.
    """

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        del place
        self.branch, self.dropout = branch, dropout
        self.norm_in = make_norm(config.norm, config.width, config.steps)
        self.over: tuple[AttentionOverDepth, ...] = ()
        self.query_gain = as_is(nn.Parameter(torch.zeros(config.width)))

    def forward(self, h: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        (streams,) = self.over
        h = tap("stream_in", index, h)
        v = self.dropout(self.branch(tap("branch_in", index, self.norm_in(h)), tap))
        tap("skip", index, h)
        streams.values.append(tap("branch_out", index, v))
        return tap("stream_out", index, attended(streams.values, self.query_gain))


class DeltaDepthWire(nn.Module):
    """One sublayer of delta attention residuals, [B, T, D] to [B, T, D]: x+ = x + F(N(x + s)), s the
    attention-weighted average of the embedding and of all earlier branch outputs, by a learned query that
    starts at 0; without s in the first sublayer (arXiv:2605.18855)."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        self.branch, self.dropout, self.is_first = branch, dropout, place.number == 1
        self.norm_in = make_norm(config.norm, config.width, config.steps)
        self.over: tuple[AttentionOverDepth, ...] = ()
        if not self.is_first:
            self.query_gain = as_is(nn.Parameter(torch.zeros(config.width)))

    def forward(self, x: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        (streams,) = self.over
        x = tap("stream_in", index, x)
        h = x if self.is_first else x + attended(streams.values, self.query_gain)
        f = self.dropout(self.branch(tap("branch_in", index, self.norm_in(h)), tap))
        f = tap("branch_out", index, f)
        streams.values.append(f)
        return tap("stream_out", index, tap("skip", index, x) + f)
