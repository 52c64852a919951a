"""The slow, obvious twin of the model: every scheme as its paper writes it, without wires or taps.

A new scheme needs one line in FORMULAS (and its key below, if it has those norms); then the tests
of the model and of every probe cover it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from normviz import RunConfig

Function = Callable[[Tensor], Tensor]
Params = Mapping[str, Tensor]
Formula = Callable[[Tensor, Function, Any, int], tuple[Tensor, Tensor, Function]]


def same(x: Tensor) -> Tensor:
    return x


# (skip, branch, what is done to their sum) of x, branch F, norms N and depth L.
FORMULAS: dict[str, Formula] = {
    "pre": lambda x, F, N, L: (x, F(N.norm_in(x)), same),
    "pre_nofinal": lambda x, F, N, L: (x, F(N.norm_in(x)), same),
    "post": lambda x, F, N, L: (x, F(x), N.norm_main),
    "sandwich": lambda x, F, N, L: (x, N.norm_out(F(N.norm_in(x))), same),
    "peri": lambda x, F, N, L: (x, N.norm_out(F(N.norm_in(x))), same),
    "deepnorm": lambda x, F, N, L: ((2 * L) ** 0.25 * x, F(x), N.norm_main),
    "none": lambda x, F, N, L: (x, F(x), same),
}
FINAL_NORM = {"pre", "sandwich", "peri"}
EMBED_NORM = {"peri"}


def normed(kind: str, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """The norms by their formulas, over the last axis."""
    if kind == "none":
        return x
    assert weight is not None
    if kind == "rmsnorm":
        return weight * x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    assert bias is not None
    spread = x - x.mean(-1, keepdim=True)
    return weight * spread / (spread.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() + bias


@dataclass
class Norms:
    """The norms of one place by slot: `N.norm_in(x)`."""

    params: Params
    prefix: str
    kind: str

    def __getattr__(self, slot: str) -> Function:
        weight = self.params.get(f"{self.prefix}{slot}.weight")
        bias = self.params.get(f"{self.prefix}{slot}.bias")
        return lambda x: normed(self.kind, x, weight, bias)


@dataclass
class Trace:
    """Everything a forward pass met: per block (stream, with the embedding first; logits, weights,
    [B, H, T, T]) or per sublayer (skip, branch)."""

    stream: list[Tensor] = field(default_factory=list)
    skip: list[Tensor] = field(default_factory=list)
    branch: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    output: Tensor = field(default_factory=lambda: torch.empty(0))
    loss: Tensor = field(default_factory=lambda: torch.empty(0))


def linear(p: Params, name: str, x: Tensor) -> Tensor:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def attention(p: Params, name: str, config: RunConfig, trace: Trace, x: Tensor) -> Tensor:
    """Causal attention, one head and one position at a time."""
    B, T, D = x.shape
    head = D // config.heads
    q, k, v = linear(p, f"{name}.qkv", x).split(D, dim=-1)
    q, k, v = (y.view(B, T, config.heads, head).transpose(1, 2) for y in (q, k, v))
    if config.qk_norm == "on":
        q, k = (y / (y.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() for y in (q, k))
    logits = q @ k.transpose(2, 3) / math.sqrt(head)
    rows = [torch.softmax(logits[:, :, i, : i + 1], -1) for i in range(T)]
    weights = torch.stack([torch.nn.functional.pad(row, (0, T - row.shape[-1])) for row in rows], 2)
    trace.logits.append(logits)
    trace.weights.append(weights)
    return linear(p, f"{name}.out", (weights @ v).transpose(1, 2).reshape(B, T, D))


def feed_forward(p: Params, name: str, config: RunConfig, x: Tensor) -> Tensor:
    inner = linear(p, f"{name}.up", x)
    if config.activation == "relu":
        inner = inner.clamp(min=0)
    else:
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    return linear(p, f"{name}.down", inner)


def sublayer(trace: Trace, config: RunConfig, x: Tensor, branch: Function, norms: Norms) -> Tensor:
    skip, added, after = FORMULAS[config.scheme](x, branch, norms, config.depth)
    trace.skip.append(skip)
    trace.branch.append(added)
    return after(skip + added)


def forward(config: RunConfig, p: Params, tokens: Tensor, targets: Tensor) -> Trace:
    """The whole model and its mean loss over the counted targets."""
    trace = Trace()
    outside = Norms(p, "", config.norm)
    x = p["tokens.weight"][tokens] + p["positions.weight"][: tokens.shape[1]]
    x = outside.embed_norm(x) if config.scheme in EMBED_NORM else x
    trace.stream.append(x)
    for b in range(config.depth):
        at, ff = f"blocks.{b}.attention.", f"blocks.{b}.ffn."

        def attend(z: Tensor, name: str = f"{at}branch") -> Tensor:
            return attention(p, name, config, trace, z)

        def feed(z: Tensor, name: str = f"{ff}branch") -> Tensor:
            return feed_forward(p, name, config, z)

        x = sublayer(trace, config, x, attend, Norms(p, at, config.norm))
        x = sublayer(trace, config, x, feed, Norms(p, ff, config.norm))
        trace.stream.append(x)
    x = outside.final_norm(x) if config.scheme in FINAL_NORM else x
    trace.output = x @ p["head.weight"].T
    counted = targets >= 0
    chosen = trace.output.log_softmax(-1)[counted].gather(1, targets[counted][:, None])
    trace.loss = -chosen.mean()
    return trace
