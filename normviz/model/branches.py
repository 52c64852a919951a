"""The two branches that a sublayer wraps, self-attention and the feed-forward network."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from ..catalog import FAMILIES
from ..catalog.choices import GATED
from ..catalog.scheme import Slots
from ..config import RunConfig
from . import draws
from .gains import Clock, Multiplier
from .marks import as_is, drawn
from .norms import make_norm
from .qk_norm import make_qk_norm, make_v_norm
from .sites import Tap


class Dropout(nn.Module):
    """Zeroes each number with probability `p` and divides the rest by 1 - p.

    Its draws depend on the seed, the `site` and the step alone. Site 0 is the embedding, sites 2b - 1 and 2b
    are the two branches of block b; of a recurrent net site i is layer i.
    """

    factors: Tensor | None
    """The mask, where a captured step reads it; `draw` fills it before each."""

    def __init__(self, p: float, seed: int, site: int, clock: Clock) -> None:
        super().__init__()
        self.p, self.seed, self.name, self.clock = p, seed, f"dropout:{site}", clock
        self.drawn_at = -1
        self.register_buffer("factors", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """[...] to [...]; in evaluation, and where p is 0, x itself."""
        if self.p == 0.0 or not self.training:
            return x
        if self.factors is None or self.factors.shape != x.shape:
            self.factors, self.drawn_at = torch.empty_like(x), -1
        self.draw()
        return x * self.factors

    def draw(self) -> None:
        """Draw the factors of the present step, where it has not been done."""
        if self.factors is not None and self.drawn_at != self.clock.step:
            self.drawn_at = self.clock.step
            drawn = torch.from_numpy(self.mask(self.factors.numel()))
            self.factors.copy_(drawn.view(self.factors.shape), non_blocking=True)

    def mask(self, size: int) -> NDArray[np.float32]:
        """The factors [size] of the present step: 0 or 1 / (1 - p)."""
        rng = draws.generator(self.name, self.seed, self.clock.step)
        mask = draws.uniform(rng, size) >= self.p
        return mask.astype(np.float32) / np.float32(1.0 - self.p)


HIDDEN = -1e30
"""Added to the logit of a hidden position: softmax makes its weight exactly 0,
and 0 times HIDDEN is still 0."""


class Linear(nn.Linear):
    """A linear map without initial values: `model.init` draws them, and drawing twice takes twice as long."""

    def reset_parameters(self) -> None:
        """Draw nothing; torch calls this when it makes the module."""


class SpectralLinear(Linear):
    """A linear map by gamma W / sigma: sigma is the largest singular value of W, gamma is learned and starts
    at 1 (arXiv:2303.06296). sigma is exact at first; then each forward pass in training does one power
    iteration, from the singular vector `u` of the last."""

    u: Tensor | None

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.gamma = as_is(nn.Parameter(torch.ones(())))
        self.register_buffer("u", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.gamma / self.sigma() * self.weight, self.bias)

    def sigma(self) -> Tensor:
        """The largest singular value, a scalar; its gradient takes the singular vectors as constants."""
        W = self.weight
        with torch.no_grad():
            u = torch.linalg.svd(W, full_matrices=False)[2][0] if self.u is None else self.u
            v = F.normalize(W @ u, dim=0)
            u = F.normalize(W.T @ v, dim=0)
            if self.training:  # in place: a captured step writes where it reads
                self.u = u if self.u is None else self.u.copy_(u)
        return v @ W @ u


def linear(slots: Slots, inputs: int, outputs: int) -> Linear:
    """A linear map of a branch, without initial values."""
    return (SpectralLinear if slots.spectral else Linear)(inputs, outputs)


def causal_mask(seq_len: int) -> Tensor:
    """[T, T]: 0 where position i may see position j <= i, else HIDDEN."""
    return torch.full((seq_len, seq_len), HIDDEN).triu(1)


def angles(seq_len: int, channels: int) -> Tensor:
    """[T, channels / 2] float64: position times 10000^(-2 i / channels); arXiv:1706.03762, section 3.5."""
    rates = 10000.0 ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
    return torch.arange(seq_len, dtype=torch.float64)[:, None] * rates


def rotated(x: Tensor, turn: Tensor) -> Tensor:
    """Queries or keys [..., T, d_h] rotated by their positions; `turn` [2, T, d_h / 2] has cosines and sines.
    Channel i is paired with channel i + d_h / 2, as in Llama (arXiv:2104.09864)."""
    (a, b), (cos, sin) = x.chunk(2, -1), turn
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    """Multi-head self-attention, [B, T, D] to [B, T, D]; with norms on q, k and v."""

    mask: Tensor
    turn: Tensor
    largest: Tensor
    """The largest logit of each head [H] in the last training pass, which QK-clip reads."""

    def __init__(self, config: RunConfig, slots: Slots, block: int, clock: Clock) -> None:
        super().__init__()
        width, head = config.width, config.width // config.heads
        self.heads, self.block = config.heads, block
        self.qk_norm = make_qk_norm(config.qk_norm, config.heads, head)
        self.v_norm = make_v_norm(config.v_norm)
        if config.parametrisation != "standard" and self.qk_norm.alpha != 1.0:
            self.qk_norm.alpha = 1.0 / head
        self.qkv = drawn(linear(slots, width, 3 * width), "qkv")
        self.out = drawn(linear(slots, width, width), "out")
        self.first_value = slots.first_value
        self.first: tuple[Attention, ...] = ()
        self.values: Tensor | None = None
        T = FAMILIES[config.family].positions(config.seq_len)
        mask = causal_mask(T) if config.mask == "causal" else torch.zeros(T, T)
        self.register_buffer("mask", mask, persistent=False)
        self.rotates = config.positions == "rope"
        if self.rotates:
            turn = angles(T, head)
            self.register_buffer(
                "turn", torch.stack((turn.cos(), turn.sin())).float(), persistent=False
            )
        gates = {"off": 0, "head": config.heads, "channel": width}[config.attn_gate]
        self.gate = drawn(linear(slots, width, gates), "gate") if gates else None
        self.clips = config.qk_clip is not None
        if self.clips:
            self.register_buffer("largest", torch.zeros(config.heads), persistent=False)
        self.sink = as_is(nn.Parameter(torch.zeros(config.heads))) if config.sinks == "on" else None
        inner = config.norm if slots.norm_inner else "none"
        self.norm_inner = make_norm(inner, width, config.steps)
        qkv = config.norm if slots.norm_qkv else "none"
        self.has_qkv_norm = qkv != "none"
        self.norm_q, self.norm_k, self.norm_v = (
            make_norm(qkv, head, config.steps) for _ in range(3)
        )
        self.unit_qk = slots.unit_qk
        self.qk_gain = Multiplier(slots.qk_gain, width, clock)
        self.sizes_qk = slots.unit_qk or not slots.qk_gain.is_one
        self.head_gain = as_is(nn.Parameter(torch.ones(config.heads))) if slots.head_gain else None

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        B, T, D = x.shape
        H, head = self.heads, D // self.heads
        q, k, v = (
            self.qkv(x)
            .view(B, T, 3, H, head)
            .permute(2, 0, 3, 1, 4)
            .reshape(3, B * H, T, head)
            .unbind(0)
        )
        if self.has_qkv_norm:
            q, k, v = self.norm_q(q), self.norm_k(k), self.norm_v(v)
        if self.sizes_qk:
            q, k = self.sized(torch.stack((q, k)))
        (q, k), v = self.qk_norm(q, k), self.v_norm(v)
        if self.rotates:
            q, k = rotated(q, self.turn), rotated(k, self.turn)
        v = self.mixed_values(v)
        # Written out rather than through the fused kernel: probes read the logits and weights, and
        # a forward pass that differed with probes on would not be inert. At hero size it costs 3 %.
        alpha = self.qk_norm.alpha
        logits = torch.baddbmm(self.mask, q, k.transpose(1, 2), alpha=alpha)  # [B*H, T, T]
        logits = tap("attn_logits", self.block, logits)
        if self.clips and self.training:
            self.largest.copy_(logits.detach().view(B, H, -1).amax((0, 2)))
        weights = tap("attn_weights", self.block, torch.softmax(logits, -1))
        mixed = torch.bmm(weights, v).view(B, H, T, head)
        if self.sink is not None:  # a softmax with one more logit, whose weight is dropped
            size = torch.logsumexp(logits, -1).view(B, H, T, 1)
            mixed = mixed * torch.sigmoid(size - self.sink[:, None, None])
        if self.gate is not None:
            mixed = mixed * torch.sigmoid(self.gate(x)).unflatten(-1, (H, -1)).transpose(1, 2)
        if self.head_gain is not None:
            mixed = mixed * self.head_gain[:, None, None]
        mixed = mixed.transpose(1, 2).reshape(B, T, D)
        return self.out(self.norm_inner(mixed))

    def sized(self, qk: Tensor) -> tuple[Tensor, ...]:
        """Queries and keys [2, B*H, T, d_h], each scaled to the length and by the gain of the scheme."""
        head, gain = qk.shape[-1], self.qk_gain.amount()
        if isinstance(gain, Tensor) and gain.ndim:
            gain = gain.view(self.heads, 1, head)
        if self.unit_qk:
            qk, gain = F.normalize(qk, dim=-1), gain * head**0.5
        heads = qk.view(2, -1, self.heads, *qk.shape[2:])
        return (heads * gain).view(qk.shape).unbind(0)

    def mixed_values(self, v: Tensor) -> Tensor:
        """Values [B*H, T, d_h], mixed with those of the first block where the scheme has `first_value`."""
        if self.first_value == 0.0:
            return v
        if not self.first:
            self.values = v
            return v
        (first,) = self.first
        assert first.values is not None
        return (1.0 - self.first_value) * v + self.first_value * first.values


def relu2(x: Tensor) -> Tensor:
    """max(0, x)^2 of each number of x [...]; arXiv:2109.08668."""
    return F.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "relu2": relu2,
    "swiglu": F.silu,
    "geglu": F.gelu,
}
"""The function of single numbers of each activation; of those with a gate, of the gate."""


class FeedForward(nn.Module):
    """Two linear maps with an activation between, [B, T, D] to [B, T, D].

    With a gate `up` gives the gate and the values that it multiplies, of `hidden` channels each.
    """

    def __init__(self, config: RunConfig, slots: Slots, clock: Clock) -> None:
        super().__init__()
        width, hidden = config.width, config.hidden
        self.is_gated = config.activation in GATED
        up = 2 * hidden if self.is_gated else hidden
        self.up = drawn(linear(slots, width, up), "up")
        self.down = drawn(linear(slots, hidden, width), "down")
        inner = config.norm if slots.norm_inner else "none"
        self.norm_inner = make_norm(inner, hidden, config.steps)
        self.hidden_gain = Multiplier(slots.hidden_gain, width, clock, up)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        del tap
        hidden = self.hidden_gain(self.up(x))
        if self.is_gated:
            gate, hidden = hidden.chunk(2, -1)
            hidden = self.activation(gate) * hidden
        else:
            hidden = self.activation(hidden)
        return self.down(self.norm_inner(hidden))
