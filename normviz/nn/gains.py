"""Multipliers of a wire: constants, learned numbers, and such that rise over the first steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..catalog.scheme import Gain


class Clock:
    """How much of the run is over, 0 to 1; training sets it, ramps read it."""

    def __init__(self) -> None:
        self.share = 0.0


class Multiplier(nn.Module):
    """Multiplies [..., D] by a gain; without a kernel where the gain is the constant 1."""

    def __init__(self, gain: Gain, width: int, clock: Clock) -> None:
        super().__init__()
        self.gain, self.clock = gain, clock
        if gain.learned:
            shape = (width,) if gain.learned == "channel" else ()
            self.weight = nn.Parameter(torch.full(shape, gain.value))

    def forward(self, x: Tensor) -> Tensor:
        gain = self.gain
        if gain.is_one:
            return x
        y = x * (self.weight if gain.learned else gain.value)
        if gain.ramp > self.clock.share:
            y = y * (self.clock.share / gain.ramp)
        return y


class OutputGate(nn.Module):
    """GPAS: y - SiLU(q) stop_gradient(y), q a learned number that starts at 0 (arXiv:2506.22049)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, y: Tensor) -> Tensor:
        return y - nn.functional.silu(self.weight) * y.detach()
