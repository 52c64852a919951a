"""Multipliers of a wire: constants, learned numbers, and gains that rise during the first steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..catalog.scheme import Gain
from .marks import as_is


class Clock:
    """The step, and the share of the run that is over, 0 to 1; training sets them, dropout and ramps read
    them."""

    def __init__(self) -> None:
        self.step = 0
        self.share = 0.0


class Multiplier(nn.Module):
    """Multiplies [..., D] by a gain; without a kernel where the gain is the constant 1.

    `width` is the stream's; a gain of other channels than the stream's has `channels` of them.
    """

    def __init__(self, gain: Gain, width: int, clock: Clock, channels: int | None = None) -> None:
        super().__init__()
        self.gain, self.clock = gain, clock
        start, self.factor = scaled(gain, width)
        if gain.learned:
            shape = (channels or width,) if gain.learned == "channel" else ()
            self.weight = as_is(nn.Parameter(torch.full(shape, start)))

    def amount(self) -> Tensor | float:
        """The present factor: a number, or a tensor of shape [] or [channels]."""
        gain, factor = self.gain, self.factor
        if gain.ramp > self.clock.share:
            factor *= self.clock.share / gain.ramp
        if not gain.learned:
            return gain.value * factor
        return self.weight if factor == 1.0 else self.weight * factor

    def forward(self, x: Tensor) -> Tensor:
        return x if self.gain.is_one else x * self.amount()


def scaled(gain: Gain, width: int) -> tuple[float, float]:
    """The initial value of a learned gain's parameter, and the constant that makes it the gain."""
    root = width**0.5
    unit = (root if gain.unit == "sqrt(d)" else 1.0) / gain.over
    if gain.stored == "1/sqrt(d)":
        return 1.0 / root, gain.value * root * unit
    return gain.value, unit


class Shift(nn.Module):
    """Adds a learned number a channel, which starts at 0, to [..., D]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = as_is(nn.Parameter(torch.zeros(width)))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight


class OutputGate(nn.Module):
    """GPAS: y - SiLU(q) stop_gradient(y), q a learned number that starts at 0 (arXiv:2506.22049)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = as_is(nn.Parameter(torch.zeros(())))

    def forward(self, y: Tensor) -> Tensor:
        return y - nn.functional.silu(self.weight) * y.detach()
