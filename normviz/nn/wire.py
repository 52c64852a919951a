"""The residual wire: one sublayer, built from a scheme's record. Every placement runs through it.

x ---+--- N_skip --- a ----------------------- (+) --- N_main --- x+
     |                                          |
     +--- N_in --- s --- F --- N_out --- g -----+
"""

from __future__ import annotations

from torch import Tensor, nn

from ..catalog.scheme import Slots
from .dropout import Dropout
from .norms import make_norm
from .sites import Tap


def scaled(x: Tensor, gain: float) -> Tensor:
    """`x * gain`, without a kernel when the gain is 1."""
    return x if gain == 1.0 else x * gain


class Wire(nn.Module):
    """x+ = N_main(a N_skip(x) + g N_out(F(s N_in(x)))) on a [B, T, D] stream."""

    def __init__(
        self, slots: Slots, norm: str, width: int, branch: nn.Module, dropout: Dropout
    ) -> None:
        super().__init__()
        self.branch, self.dropout, self.slots = branch, dropout, slots
        self.norm_in = make_norm(norm if slots.norm_in else "none", width)
        self.norm_out = make_norm(norm if slots.norm_out else "none", width)
        self.norm_skip = make_norm(norm if slots.norm_skip else "none", width)
        self.norm_main = make_norm(norm if slots.norm_main else "none", width)

    def forward(self, x: Tensor, index: int, tap: Tap) -> Tensor:
        slots = self.slots
        x = tap("stream_in", index, x)
        skip = tap("skip", index, scaled(self.norm_skip(x), slots.skip_gain))
        z = tap("branch_in", index, scaled(self.norm_in(x), slots.input_gain))
        f = self.norm_out(self.dropout(self.branch(z, tap)))
        f = tap("branch_out", index, scaled(f, slots.branch_gain))
        return tap("stream_out", index, self.norm_main(skip + f))
