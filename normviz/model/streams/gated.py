"""The gated transformer of GTrXL: a gate like a GRU's takes the place of the addition (arXiv:1910.06764).

y = ReLU(F(N(x))),  r = sigmoid(W_r y + U_r x),  z = sigmoid(W_z y + U_z x - b),
h = tanh(W_h y + U_h (r * x)),  x+ = (1 - z) * x + z * h.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...catalog.scheme import Place
from ...config import RunConfig
from ..branches import Dropout, Linear
from ..marks import as_is, drawn
from ..norms import make_norm
from ..sites import Tap
from ..wire import SublayerContext


class GatedWire(nn.Module):
    """One sublayer of GTrXL, [B, T, D] to [B, T, D]; the bias b of every channel starts at 2."""

    def __init__(
        self, config: RunConfig, place: Place, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        del place
        width = config.width
        self.branch, self.dropout = branch, dropout
        self.norm_in = make_norm(config.norm, width, config.steps)

        def gate() -> Linear:
            return drawn(Linear(width, width, bias=False), "gate")

        self.gate_reset_y, self.gate_reset_x = gate(), gate()
        self.gate_update_y, self.gate_update_x = gate(), gate()
        self.gate_new_y, self.gate_new_x = gate(), gate()
        self.gain_bias = as_is(nn.Parameter(torch.full((width,), 2.0)))

    def forward(self, x: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        del around
        x = tap("stream_in", index, x)
        y = F.relu(self.dropout(self.branch(tap("branch_in", index, self.norm_in(x)), tap)))
        r = torch.sigmoid(self.gate_reset_y(y) + self.gate_reset_x(x))
        z = torch.sigmoid(self.gate_update_y(y) + self.gate_update_x(x) - self.gain_bias)
        h = torch.tanh(self.gate_new_y(y) + self.gate_new_x(r * x))
        skip = tap("skip", index, (1 - z) * x)
        return tap("stream_out", index, skip + tap("branch_out", index, z * h))
