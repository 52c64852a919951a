"""A graph network: messages between neighbours in place of attention; arXiv:1609.02907 with residual
branches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..catalog import SCHEMES
from ..catalog.scheme import Place, Slots
from ..config import RunConfig
from .branches import linear
from .graphs import GRAPHS
from .marks import drawn
from .mlp import MLP
from .norms import make_norm
from .sites import Tap


class Messages(nn.Module):
    """Attention whose weights are the graph's: W_out N(A W_value x), [1, N, D] to [1, N, D].

    `weights` [N, N] is A, fixed: 1 / sqrt(degree degree') between neighbours and of a node to itself.
    """

    weights: Tensor

    def __init__(self, config: RunConfig, slots: Slots) -> None:
        super().__init__()
        width = config.width
        self.value = drawn(linear(slots, width, width), "qkv")
        self.out = drawn(linear(slots, width, width), "out")
        self.norm_inner = make_norm(config.norm if slots.norm_inner else "none", width)
        weights = torch.from_numpy(GRAPHS[config.task]().weights())
        self.register_buffer("weights", weights, persistent=False)

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        del tap
        return self.out(self.norm_inner(self.weights @ self.value(x)))


class GNN(MLP):
    """Features [N, F] float32 of all nodes to logits [1, N, V]; a node is a position."""

    def first_branch(self, c: RunConfig, place: Place) -> nn.Module:
        """The first branch of a block: messages of the neighbours."""
        return Messages(c, SCHEMES[c.scheme].slots(place))
