"""The slow, obvious twins of the norms: every one by its formula, with plain operations alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Params = Mapping[str, Tensor]


def rms(x: Tensor, eps: float) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()


def centred(x: Tensor) -> Tensor:
    spread = x - x.mean(-1, keepdim=True)
    return spread / (spread.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def length(x: Tensor) -> Tensor:
    return x.pow(2).sum(-1, keepdim=True).sqrt()


def in_groups(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of each quarter of the channels; of halves or of all where a quarter is too small."""
    groups = {4: 2, 15: 1}.get(x.shape[-1], 4)
    return torch.cat([function(part) for part in x.chunk(groups, -1)], -1)


def over_tokens(x: Tensor) -> Tensor:
    tokens = x.flatten(0, -2)
    spread = tokens - tokens.mean(0)
    return (spread / (spread.pow(2).mean(0) + 1e-5).sqrt()).view(x.shape)


def first_power(x: Tensor) -> Tensor:
    """PowerNorm's first pass: its own backward pass takes the quadratic mean as a constant."""
    x = in_groups(x, lambda part: rms(part, 1e-5))
    return x / (x.detach().flatten(0, -2).pow(2).mean(0) + 1e-5).sqrt()


def partial(x: Tensor) -> Tensor:
    part = x[..., : max(1, math.floor(0.0625 * x.shape[-1]))]
    return x / (part.pow(2).mean(-1, keepdim=True).sqrt() + 1e-8)


def completed(x: Tensor) -> Tensor:
    """RMSNorm of the token with its left-out channel, which is left out again."""
    return rms(torch.cat([x, -x.sum(-1, keepdim=True)], -1), 1e-5)[..., :-1]


def gated(y: Tensor, p: Params) -> Tensor:
    low = y @ p["narrow.weight"].T
    opened = (low / (1 + torch.exp(-low))) @ p["widen.weight"].T
    return y / (1 + torch.exp(-opened))


def tapered(x: Tensor, p: Params) -> Tensor:
    """With the parameters alone it is that of a run's first passes, and of the norm before the head."""
    gate, normed = p.get("gate", torch.ones(())), p["weight"] * rms(x, 1e-6)
    if "tapered" not in p:
        return normed
    return gate * normed + (1 - gate) * p.get("factor", 1.0) * p["tapered"] * x


FORMULAS: dict[str, Callable[[Tensor, Params], Tensor]] = {
    "layernorm": lambda x, p: p["weight"] * centred(x) + p["bias"],
    "layernorm_nobias": lambda x, p: p["weight"] * centred(x),
    "layernorm_nonparam": lambda x, p: centred(x),
    "layernorm_1p": lambda x, p: (1 + p["offset"]) * centred(x) + p["bias"],
    "groupnorm": lambda x, p: p["weight"] * in_groups(x, centred) + p["bias"],
    "rmsnorm": lambda x, p: p["weight"] * rms(x, 1e-6),
    "rmsnorm_1p": lambda x, p: (1 + p["offset"]) * rms(x, 1e-6),
    "rmsnorm_noaffine": lambda x, p: rms(x, 1e-6),
    "prmsnorm": lambda x, p: p["weight"] * partial(x),
    "crmsnorm": lambda x, p: completed(x),
    "seednorm": lambda x, p: (
        (p["weight"] + torch.tanh((x * p["beta"]).sum(-1, keepdim=True)) * p["alpha"])
        * rms(x, 1e-6)
    ),
    "preaffine": lambda x, p: p["weight"] * rms(p["before"] * x, 1e-6),
    "gatednorm": lambda x, p: gated(p["weight"] * rms(x, 1e-6), p),
    "tapernorm": lambda x, p: tapered(x, p),
    "scalenorm": lambda x, p: p["scale"] * x / length(x).clamp(min=1e-5),
    "l2": lambda x, p: x / length(x).clamp(min=1e-12),
    "dyt": lambda x, p: p["weight"] * torch.tanh(p["alpha"] * x) + p["bias"],
    "derf": lambda x, p: p["weight"] * torch.erf(p["alpha"] * x + p["shift"]) + p["bias"],
    "bhyt": lambda x, p: p["weight"] * torch.tanh(0.2 * rms(x, 1e-6)),
    "batchnorm": lambda x, p: p["weight"] * over_tokens(x) + p["bias"],
    "powernorm": lambda x, p: p["weight"] * first_power(x) + p["bias"],
    "none": lambda x, p: x,
}


def normed(kind: str, x: Tensor, p: Params) -> Tensor:
    """A norm of x, over the last axis (and over all tokens, in training, for two of them)."""
    return FORMULAS[kind](x, p)


def qk_logits(kind: str, params: Params, prefix: str, q: Tensor, k: Tensor) -> Tensor:
    """Attention logits [B, H, T, T] of queries and keys [B, H, T, h]."""
    p = {n.removeprefix(prefix): x for n, x in params.items() if n.startswith(prefix)}
    root = math.sqrt(q.shape[-1])
    if kind == "cosine":
        cosine = (q / length(q)) @ (k / length(k)).transpose(2, 3)
        return cosine * torch.exp(p["log_scale"].clamp(max=math.log(100)))
    if kind == "full":
        q, k = full_width(q, p["q.weight"]), full_width(k, p["k.weight"])
    elif kind == "layernorm":
        q, k = p["scale_q"] * centred(q), p["scale_k"] * centred(k)
    elif kind != "off":
        q, k = rms(q, 1e-6), rms(k, 1e-6)
    if kind == "head":
        q, k = p["q.weight"] * q, p["k.weight"] * k
    return q @ k.transpose(2, 3) / root


def full_width(x: Tensor, weight: Tensor) -> Tensor:
    size = (x.pow(2).mean((1, 3), keepdim=True) + 1e-5).sqrt()
    return x / size * weight.view(1, x.shape[1], 1, -1)


def v_normed(kind: str, v: Tensor) -> Tensor:
    return v if kind == "off" else rms(v, 1e-6)
