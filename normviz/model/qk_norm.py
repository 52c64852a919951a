"""Norms of queries, keys and values, applied before attention computes its logits.

Queries and keys are [B*H, T, d_h] before and after; the logits are `alpha` times their product.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .marks import as_is

EPS = 1e-6
FULL_EPS = 1e-5
LAYER_EPS = 1e-5
LARGEST = math.log(100.0)
"""Swin V2's bound on the logarithm of the cosine's scale."""


class QKNorm(nn.Module):
    """No norm, and the base class of the QK-norms. `alpha` is 1 / sqrt(d_h)."""

    def __init__(self, heads: int, head: int) -> None:
        super().__init__()
        self.heads, self.head = heads, head
        self.alpha = head**-0.5

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, each [B*H, T, d_h] to [B*H, T, d_h]."""
        return q, k


class Plain(QKNorm):
    """RMS of each head, nothing learned; after arXiv:2010.04245."""

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return F.rms_norm(q, (self.head,), eps=EPS), F.rms_norm(k, (self.head,), eps=EPS)


class PerHead(QKNorm):
    """RMS of each head with a learned scale [d_h] that all heads share; Qwen3, arXiv:2505.09388."""

    def __init__(self, heads: int, head: int) -> None:
        super().__init__(heads, head)
        self.q, self.k = nn.RMSNorm(head, EPS), nn.RMSNorm(head, EPS)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.q(q), self.k(k)


class PerHeadLayerNorm(QKNorm):
    """LayerNorm of each head with a learned scale [d_h] of its own and no shift; Cohere's Command models,
    StableLM 2."""

    def __init__(self, heads: int, head: int) -> None:
        super().__init__(heads, head)
        self.scale_q, self.scale_k = (nn.Parameter(torch.ones(heads, 1, head)) for _ in range(2))

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self._of_head(self.scale_q, q), self._of_head(self.scale_k, k)

    def _of_head(self, scale: Tensor, x: Tensor) -> Tensor:
        normed = F.layer_norm(x, (self.head,), eps=LAYER_EPS)
        return (scale * normed.view(-1, self.heads, *x.shape[1:])).view(x.shape)


class FullWidth(QKNorm):
    """RMS over all heads together with a learned scale [d]; OLMo 2, arXiv:2501.00656."""

    def __init__(self, heads: int, head: int) -> None:
        super().__init__(heads, head)
        self.q, self.k = nn.RMSNorm(heads * head, FULL_EPS), nn.RMSNorm(heads * head, FULL_EPS)

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self._over_heads(self.q, q), self._over_heads(self.k, k)

    def _over_heads(self, norm: nn.RMSNorm, x: Tensor) -> Tensor:
        T = x.shape[1]
        joined = x.view(-1, self.heads, T, self.head).transpose(1, 2).flatten(2)  # [B, T, d]
        split = norm(joined).view(-1, T, self.heads, self.head).transpose(1, 2)
        return split.reshape(x.shape)


class Cosine(QKNorm):
    """Cosine of q and k times exp(min(s, ln 100)), s of each head from ln 10; arXiv:2111.09883."""

    def __init__(self, heads: int, head: int) -> None:
        super().__init__(heads, head)
        self.alpha = 1.0
        self.log_scale = nn.Parameter(torch.full((heads, 1, 1), math.log(10.0)))

    def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        scale = self.log_scale.clamp(max=LARGEST).exp()
        unit = F.normalize(q, dim=-1).view(-1, self.heads, *q.shape[1:])
        return (scale * unit).view(q.shape), F.normalize(k, dim=-1)


class VNorm(nn.Module):
    """RMS of each head's values, nothing learned; Gemma 4's v_norm. [..., d_h] to [..., d_h]."""

    def forward(self, v: Tensor) -> Tensor:
        return F.rms_norm(v, v.shape[-1:], eps=EPS)


QK: dict[str, Callable[[int, int], QKNorm]] = {
    "off": QKNorm,
    "on": Plain,
    "head": PerHead,
    "layernorm": PerHeadLayerNorm,
    "full": FullWidth,
    "cosine": Cosine,
}
V: dict[str, Callable[[], nn.Module]] = {"off": nn.Identity, "on": VNorm}


def make_qk_norm(key: str, heads: int, head: int) -> QKNorm:
    """A fresh QK-norm for `heads` heads of `head` channels. Raises KeyError for an unknown key."""
    return as_is(QK[key](heads, head))


def make_v_norm(key: str) -> nn.Module:
    """A fresh V-norm. Raises KeyError for an unknown key."""
    return as_is(V[key]())
