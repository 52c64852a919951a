"""The residual wire: one sublayer, built from a scheme's record. Every placement runs through it.

x --- r, e --- N_fork ---+--- N_skip --- a ----------- (+) --- N_main --- m --- x+
                         |                              |
                         +--- N_in --- s --- F --- N_out --- g
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..catalog.scheme import Gain, Place, Scheme, Slots
from ..config import RunConfig
from .branches import Dropout
from .gains import Clock, Multiplier, OutputGate, Shift
from .norms import make_norm
from .sites import Tap

GATE_SCALE = 0.3
"""Scale of the gate in the variance-preserving mix: sigmoid(g / 0.3)."""


@dataclass
class SublayerContext:
    """What a sublayer may read besides the stream: the embedding, the input of its block, and the output
    of attention's norm. All [B, T, D]."""

    embedding: Tensor
    block: Tensor
    normed: Tensor | None = None


class SharedGains(nn.Module):
    """The learned numbers that both sublayers of a block use: one gain, and GPAS' gate."""

    def __init__(self, slots: Slots, width: int, clock: Clock) -> None:
        super().__init__()
        if slots.branch_gain.learned == "block":
            self.branch_gain = Multiplier(slots.branch_gain, width, clock)
        if slots.gate:
            self.gate = OutputGate()


@torch.no_grad()
def started(norm: nn.Module, at: float) -> nn.Module:
    """A norm whose learned scale and shift start at `at` times their usual values; a norm that learns
    nothing has its output multiplied by `at` in every step.

    Raises ValueError for a norm that learns something, but no weight, scale or offset.
    """
    if at == 1.0:
        return norm
    learned = dict(norm.named_parameters())
    if not learned:
        return nn.Sequential(norm, Multiplier(Gain(at), 0, Clock()))
    if not learned.keys() & {"weight", "scale", "offset"}:
        raise ValueError(
            f"{type(norm).__name__} learns {', '.join(learned)}: call its scale weight, scale or offset"
        )
    for name in learned.keys() & {"weight", "scale", "bias"}:
        learned[name].mul_(at)
    if "offset" in learned:  # the scale is 1 + offset
        learned["offset"].add_(at - 1.0)
    return norm


def active(*modules: nn.Module) -> tuple[nn.Module, ...]:
    """The modules that are not the identity."""
    return tuple(
        m
        for m in modules
        if not isinstance(m, nn.Identity)
        and not (isinstance(m, Multiplier) and m.gain.is_one)
        and not (isinstance(m, Dropout) and m.p == 0.0)
    )


def through(modules: tuple[nn.Module, ...], x: Tensor) -> Tensor:
    """The output of modules, one after another, for x [B, T, D]."""
    for module in modules:
        x = module(x)
    return x


class Wire(nn.Module):
    """x+ of a [B, T, D] stream, by the slots of the scheme (`catalog.scheme` has the formula)."""

    def __init__(
        self,
        config: RunConfig,
        scheme: Scheme,
        place: Place,
        branch: nn.Module,
        shared: SharedGains,
        dropout: Dropout,
        clock: Clock,
    ) -> None:
        super().__init__()
        self.slots = slots = config.divided(scheme.slots(place))
        self.branch, self.dropout = branch, dropout

        def norm(is_there: bool, start: float = 1.0) -> nn.Module:
            module = make_norm(config.norm if is_there else "none", config.width, config.steps)
            return started(module, start) if is_there else module

        self.norm_fork = norm(slots.norm_fork)
        self.norm_in = norm(slots.norm_in and not slots.shares_norm, slots.gamma_in)
        self.norm_out = norm(slots.norm_out, slots.gamma_out)
        self.norm_skip = norm(slots.norm_skip)
        self.norm_main = norm(slots.norm_main)

        def gain(gain: Gain) -> Multiplier:
            return Multiplier(gain, config.width, clock)

        self.stream_gain, self.embed_gain = gain(slots.stream_gain), gain(slots.embed_gain)
        self.input_gain, self.skip_gain = gain(slots.input_gain), gain(slots.skip_gain)
        self.block_gain, self.main_gain = gain(slots.block_gain), gain(slots.main_gain)
        self.skip_shift, self.branch_shift = (
            Shift(config.width) if slots.shifts else nn.Identity() for _ in range(2)
        )
        own = slots.branch_gain.learned != "block"
        self.branch_gain = gain(slots.branch_gain) if own else shared.branch_gain
        self.gate = shared.gate if slots.gate else nn.Identity()

        # The modules that are not the identity, in the order of a forward pass: a call of an identity
        # costs as much as a small kernel, and there would be ten in every sublayer.
        self.stream_ops = active(self.stream_gain)
        self.before_fork = active(self.norm_fork)
        self.before_branch = active(self.norm_in, self.input_gain)
        self.after_branch = active(self.dropout, self.norm_out)
        self.skip_ops = active(self.norm_skip, self.skip_shift, self.skip_gain)
        self.branch_ops = active(self.branch_shift, self.branch_gain)
        self.after_sum = active(self.norm_main, self.main_gain, self.gate)
        self.adds_embedding = not slots.embed_gain.is_zero
        self.adds_block = not slots.block_gain.is_zero

    def forward(self, x: Tensor, index: int, tap: Tap, around: SublayerContext) -> Tensor:
        u = self.fork(tap("stream_in", index, x), around)
        f = self.branch(tap("branch_in", index, self.branch_input(u, around)), tap)
        skip, f = self.mixed(u, through(self.after_branch, f))
        if self.adds_block:
            skip = skip + self.block_gain(around.block)
        skip, f = tap("skip", index, skip), tap("branch_out", index, f)
        return tap("stream_out", index, through(self.after_sum, skip + f))

    def fork(self, x: Tensor, around: SublayerContext) -> Tensor:
        """The common input u of the skip path and the branch, [B, T, D]."""
        u = through(self.stream_ops, x)
        if self.adds_embedding:
            u = u + self.embed_gain(around.embedding)
        return through(self.before_fork, u)

    def branch_input(self, u: Tensor, around: SublayerContext) -> Tensor:
        """The input of the branch, [B, T, D], from the common input u."""
        if self.slots.shares_norm and around.normed is not None:
            return around.normed
        source = around.block if self.slots.branch_reads == "block" else u
        around.normed = through(self.before_branch, source)
        return around.normed

    def mixed(self, u: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        """Skip path and branch, both [B, T, D], with their norms and gains."""
        if self.slots.mix == "sum":
            return through(self.skip_ops, u), through(self.branch_ops, f)
        u = self.norm_skip(u)
        gain = self.branch_gain.amount()
        if self.slots.mix == "lerp":
            g = abs(gain)
            return (1.0 - g) * u, g * f
        s = torch.sigmoid(torch.as_tensor(gain / GATE_SCALE))
        return (1.0 - s.square()).sqrt() * u, s * f
