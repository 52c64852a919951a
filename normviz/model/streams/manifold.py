"""Manifold-constrained hyper-connections: the copies are mixed by a doubly stochastic matrix, so that
no product of many mixtures can grow (arXiv:2512.24880).

pre = sigmoid, post = 2 sigmoid, res = Sinkhorn of exp, each of 0.01 RMS(vec H) W + b.
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
from .hyper import COPIES, EPS, Hyper

ROUNDS = 20
ALPHA = 0.01


def sinkhorn(logits: Tensor) -> Tensor:
    """[..., n, n] logits to a matrix whose rows and columns add up to 1, alternately; columns last.

    It is used transposed, so each new copy is an average of all copies, exact up to rounding.
    """
    matrix = logits - logits.amax((-1, -2), keepdim=True)
    matrix = matrix.exp()
    for _ in range(ROUNDS):
        matrix = matrix / matrix.sum(-1, keepdim=True)
        matrix = matrix / matrix.sum(-2, keepdim=True)
    return matrix


class Manifold(Hyper):
    """n copies, side by side; at the end their mean, as each holds a whole stream."""

    def leave(self, state: Tensor) -> Tensor:
        return state.unflatten(-1, (COPIES, self.width)).mean(-2)


class ManifoldWire(nn.Module):
    """One sublayer, [B, T, n D] to [B, T, n D]; at the start the branch reads half the sum of the copies,
    and the copies are mixed evenly."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        del place
        n, d = COPIES, config.width
        self.width, self.branch, self.dropout = d, branch, dropout
        self.norm_in = make_norm(config.norm, d, config.steps)
        self.gain_of_state = as_is(nn.Parameter(torch.zeros(n * d, 2 * n + n * n)))
        self.gain_start = as_is(nn.Parameter(torch.zeros(2 * n + n * n)))
        self.gain_scale = as_is(nn.Parameter(torch.full((3,), ALPHA)))  # of pre, post and res

    def coefficients(self, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """pre [B, T, n], post [B, T, n] and res [B, T, n, n] of a state [B, T, n D]."""
        n = COPIES
        parts = F.rms_norm(state, state.shape[-1:], eps=EPS) @ self.gain_of_state
        pre, post, res = (
            scale * part + start
            for scale, part, start in zip(
                self.gain_scale, parts.split((n, n, n * n), -1),
                self.gain_start.split((n, n, n * n)), strict=True,
            )
        )  # fmt: skip
        return torch.sigmoid(pre), 2 * torch.sigmoid(post), sinkhorn(res.unflatten(-1, (n, n)))

    def mixture(self, state: Tensor) -> Tensor:
        """The matrix that mixes the copies of a state [B, T, n D], [B, T, n, n]."""
        return self.coefficients(state)[2].transpose(-1, -2)

    def forward(self, state: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        state = tap("stream_in", index, state)
        pre, post, res = self.coefficients(state)
        H = state.unflatten(-1, (COPIES, self.width))
        z = self.norm_in((pre.unsqueeze(-2) @ H).squeeze(-2))
        f = self.dropout(self.branch(tap("branch_in", index, z), tap))
        skip = tap("skip", index, (res.transpose(-1, -2) @ H).flatten(-2))
        added = tap("branch_out", index, (post.unsqueeze(-1) * f.unsqueeze(-2)).flatten(-2))
        return tap("stream_out", index, skip + added)
