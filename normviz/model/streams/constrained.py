"""Other constraints on the mixing matrix of hyper-connections than mHC's Sinkhorn rounds.

mHC-lite: an average of all permutations of the copies (arXiv:2601.05732). KromHC: the Kronecker product of
two matrices p I + (1 - p) swap (arXiv:2601.21579). Identity: no mixing. All start as the identity, up
to exp(-8), and read and write mostly copy (k - 1) mod n in sublayer k, as the published code does.
"""

from __future__ import annotations

from itertools import permutations

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
from .hyper import COPIES, EPS

ALPHA = 0.01
FAR = -8.0
"""The start of what the mixing matrix does not begin with, as a logit."""

PERMUTATIONS = torch.eye(COPIES)[torch.tensor(list(permutations(range(COPIES))))]
"""All matrices that change the order of the copies, [24, n, n], the identity first."""


class UnmixedWire(nn.Module):
    """One sublayer whose copies are not mixed, [B, T, n D] to [B, T, n D]."""

    scale_of: Tensor
    logits: tuple[float, ...] = ()
    """Initial logits of the mixing matrix."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        n, d = COPIES, config.width
        self.width, self.branch, self.dropout = d, branch, dropout
        self.norm_in = make_norm(config.norm, d, config.steps)
        home = 2.0 * F.one_hot(torch.tensor((place.number - 1) % n), n) - 1.0
        start = torch.cat((home, home, torch.tensor(self.logits)))
        self.sizes = (n, n, len(self.logits))
        which = [0] * n + [1] * n + [2] * len(self.logits)
        self.register_buffer("scale_of", torch.tensor(which), persistent=False)
        self.gain_of_state = as_is(nn.Parameter(torch.zeros(n * d, len(start))))
        self.gain_start = as_is(nn.Parameter(start))
        self.gain_scale = as_is(nn.Parameter(torch.full((2 + bool(self.logits),), ALPHA)))

    def mixed(self, H: Tensor, logits: Tensor) -> Tensor:
        """The copies [B, T, n, D] after the mixing matrix that `logits` [B, T, k] describe."""
        del logits
        return H

    def forward(self, state: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        state = tap("stream_in", index, state)
        parts = F.rms_norm(state, state.shape[-1:], eps=EPS) @ self.gain_of_state
        scale = self.gain_scale.index_select(0, self.scale_of)
        pre, post, logits = (scale * parts + self.gain_start).split(self.sizes, -1)
        H = state.unflatten(-1, (COPIES, self.width))
        z = self.norm_in((pre.sigmoid().unsqueeze(-1) * H).sum(-2))
        f = self.dropout(self.branch(tap("branch_in", index, z), tap))
        skip = tap("skip", index, self.mixed(H, logits).flatten(-2))
        added = (2 * post.sigmoid()).unsqueeze(-1) * f.unsqueeze(-2)
        return tap("stream_out", index, skip + tap("branch_out", index, added.flatten(-2)))


class PermutedWire(UnmixedWire):
    """mHC-lite: each new copy is an average of all copies, exactly, by softmax weights of permutations."""

    logits = (0.0, *(FAR,) * 23)
    permutations: Tensor

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__(config, place, branch, dropout)
        self.register_buffer("permutations", PERMUTATIONS, persistent=False)

    def mixed(self, H: Tensor, logits: Tensor) -> Tensor:
        matrix = torch.einsum("btr,rij->btij", logits.softmax(-1), self.permutations.to(logits))
        return matrix.transpose(-1, -2) @ H


class KroneckerWire(UnmixedWire):
    """KromHC: copies 1, 2 and 3, 4 change places with one weight, and the pairs with another."""

    logits = (0.0, FAR, 0.0, FAR)

    def mixed(self, H: Tensor, logits: Tensor) -> Tensor:
        weights = logits.unflatten(-1, (2, 2)).softmax(-1)
        pair = torch.stack((weights, weights.flip(-1)), -2)  # [B, T, 2, 2, 2]: p I + (1 - p) swap
        matrix = torch.einsum("btij,btkl->btikjl", pair[:, :, 0], pair[:, :, 1])
        return matrix.flatten(2, 3).flatten(3).transpose(-1, -2) @ H
