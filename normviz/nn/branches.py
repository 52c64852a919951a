"""What a sublayer wraps: causal self-attention and the feed-forward network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .sites import Tap

HIDDEN = -1e30
"""Added to a logit that must not be seen: softmax makes it exactly 0, and 0 times it is still 0."""


def causal_mask(seq_len: int) -> Tensor:
    """[T, T]: 0 where position i may see position j <= i, else HIDDEN."""
    return torch.full((seq_len, seq_len), HIDDEN).triu(1)


class Attention(nn.Module):
    """Multi-head causal self-attention, [B, T, D] to [B, T, D]; optionally RMS-normed q and k."""

    mask: Tensor

    def __init__(self, width: int, heads: int, seq_len: int, qk_norm: str, block: int) -> None:
        super().__init__()
        self.heads, self.qk_norm, self.block = heads, qk_norm, block
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", causal_mask(seq_len), persistent=False)

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
        if self.qk_norm == "on":
            q, k = F.rms_norm(q, (head,), eps=1e-6), F.rms_norm(k, (head,), eps=1e-6)
        # Written out rather than through the fused kernel: probes read the logits and weights, and
        # a forward pass that differed with probes on would not be inert. At hero size it costs 3 %.
        logits = torch.baddbmm(self.mask, q, k.transpose(1, 2), alpha=head**-0.5)  # [B*H, T, T]
        logits = tap("attn_logits", self.block, logits)
        weights = tap("attn_weights", self.block, torch.softmax(logits, -1))
        mixed = torch.bmm(weights, v).view(B, H, T, head).transpose(1, 2).reshape(B, T, D)
        return self.out(mixed)


class FeedForward(nn.Module):
    """Two linear maps with an activation between, [B, T, D] to [B, T, D]."""

    def __init__(self, width: int, ratio: int, activation: str) -> None:
        super().__init__()
        self.up = nn.Linear(width, ratio * width)
        self.down = nn.Linear(ratio * width, width)
        self.activation = {"relu": F.relu, "gelu": F.gelu}[activation]

    def forward(self, x: Tensor, tap: Tap) -> Tensor:
        del tap
        return self.down(self.activation(self.up(x)))
