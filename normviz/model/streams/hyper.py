"""Hyper-connections: n copies of the stream, mixed by learned matrices around each branch.

h = A_m^T H,  H+ = A_r^T H + B^T F(N(h)), each coefficient a learned start plus s tanh(N(H) W) with
W = 0 at the start; at the end the copies are added up (arXiv:2409.19606).
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

COPIES = 4
SMALL = 0.01
EPS = 1e-6


class Hyper(OneStream):
    """The state is n copies, side by side."""

    def enter(self, x: Tensor) -> Tensor:
        return x.repeat(1, 1, COPIES)

    def leave(self, state: Tensor) -> Tensor:
        return state.unflatten(-1, (COPIES, self.width)).sum(-2)


class HyperWire(nn.Module):
    """One sublayer with dynamic hyper-connections, [B, T, n D] to [B, T, n D]; at the start the branch of
    sublayer k = 1..2L reads copy (k - 1) mod n, counted from 0."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        n, d = COPIES, config.width
        self.width, self.branch, self.dropout = d, branch, dropout
        self.norm_in = make_norm(config.norm, d, config.steps)
        read = torch.zeros(n, 1)
        read[(place.number - 1) % n] = 1.0
        start = torch.cat((read, torch.eye(n)), 1)
        self.gain_start = as_is(nn.Parameter(start))  # A_m and A_r, [n, 1 + n]
        self.gain_write = as_is(nn.Parameter(torch.ones(n)))  # B
        self.gain_of_token = as_is(nn.Parameter(torch.zeros(d, n + 1)))  # W of A_m and A_r
        self.gain_write_of_token = as_is(nn.Parameter(torch.zeros(d)))  # W of B
        self.gain_scale = as_is(nn.Parameter(torch.full((2,), SMALL)))  # s of A and of B

    def mixes(self, unit: Tensor) -> Tensor:
        """A_m and A_r, [B, T, n, 1 + n], of copies with an RMS of 1, [B, T, n, D]."""
        return self.gain_start + self.gain_scale[0] * torch.tanh(unit @ self.gain_of_token)

    def mixture(self, state: Tensor) -> Tensor:
        """The matrix that mixes the copies of a state [B, T, n D], A_r^T, [B, T, n, n]."""
        H = state.unflatten(-1, (COPIES, self.width))
        return self.mixes(F.rms_norm(H, (self.width,), eps=EPS))[..., 1:].transpose(-1, -2)

    def forward(self, state: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        H = tap("stream_in", index, state).unflatten(-1, (COPIES, self.width))  # [B, T, n, D]
        unit = F.rms_norm(H, (self.width,), eps=EPS)
        mix = self.mixes(unit)
        write = self.gain_write + self.gain_scale[1] * torch.tanh(unit @ self.gain_write_of_token)
        read = mix.transpose(-1, -2) @ H  # [B, T, 1 + n, D]: what the branch reads, and the copies
        f = self.branch(tap("branch_in", index, self.norm_in(read[..., 0, :])), tap)
        added = write.unsqueeze(-1) * self.dropout(f).unsqueeze(-2)
        skip = tap("skip", index, read[..., 1:, :].flatten(-2))
        return tap("stream_out", index, skip + tap("branch_out", index, added.flatten(-2)))
