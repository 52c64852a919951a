"""The slow, obvious twin of the model: as their papers write them, without wires or taps, the schemes that
no public implementation is held against in `parity` (and a few others, for probes and settings).

A new scheme without a peer needs one line in FORMULAS (and its key below, if it has those norms); then the
tests of the model and of every probe cover it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from norm_twins import normed, qk_logits, v_normed
from torch import Tensor
from twin_streams import RUNS

from normviz import RunConfig

Params = Mapping[str, Tensor]
Function = Callable[[Tensor], Tensor]
Formula = Callable[[Tensor, Function, Any], tuple[Tensor, Tensor, Function]]


@dataclass
class Surroundings:
    """Of one sublayer: its norms by slot (`S.norm_in(x)`; the second argument stands for a learned
    scale that a norm does not have), its learned numbers, and what it may read besides x."""

    params: Params
    block: str
    name: str
    kind: str
    b: int = 0
    L: int = 0
    embedding: Any = None
    entered: Any = None
    share: float = 0.0

    @property
    def attention(self) -> bool:
        return self.name == "attention."

    def learned(self, what: str, shared: bool = False) -> Tensor:
        return self.params[f"{self.block}{'shared.' if shared else self.name}{what}.weight"]

    def attentions_norm_in(self, x: Tensor) -> Tensor:
        return Surroundings(self.params, self.block, "attention.", self.kind).norm_in(x)

    def __getattr__(self, slot: str) -> Callable[..., Tensor]:
        prefix = f"{self.block}{self.name}{slot}."
        own = {n.removeprefix(prefix): p for n, p in self.params.items() if n.startswith(prefix)}
        scaled = own.keys() & {"weight", "scale", "offset"}
        return lambda x, start=1.0: normed(self.kind, x, own) * (1.0 if scaled else start)


@dataclass
class Trace:
    """Everything a forward pass met: per block (stream, with the embedding first; logits, weights,
    [B, H, T, T]) or per sublayer (skip, branch, and reads, what the branch reads)."""

    stream: list[Tensor] = field(default_factory=list)
    skip: list[Tensor] = field(default_factory=list)
    branch: list[Tensor] = field(default_factory=list)
    reads: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    output: Tensor = field(default_factory=lambda: torch.empty(0))
    loss: Tensor = field(default_factory=lambda: torch.empty(0))


def linear(p: Params, name: str, x: Tensor) -> Tensor:
    W = p[f"{name}.weight"]
    if f"{name}.gamma" in p:
        W = p[f"{name}.gamma"] * W / torch.linalg.svdvals(W)[0]
    return x @ W.T + p[f"{name}.bias"]


def same(x: Tensor) -> Tensor:
    return x


def pre(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, F(S.norm_in(x)), same


def post(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, F(x), S.norm_main


def rising(S: Any) -> float:
    return min(1, S.share / (0.25 * S.b / S.L))


def gpas(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    q = S.learned("gate", shared=True)
    return x, F(S.norm_in(x)), lambda y: y - torch.nn.functional.silu(q) * y.detach()


def hybridnorm(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    if S.attention:
        return x, F(x), same
    z = S.norm_fork(x)
    return z, F(z), same


def b2t(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return (x if S.attention else S.entered + x), F(x), S.norm_main


def spannorm(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return (x if S.attention else S.entered), F(x), S.norm_main


def lambda_skip(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    if S.attention:
        x = S.learned("stream_gain") * x + S.learned("embed_gain") * S.embedding
    return pre(x, F, S)


# (skip, branch, what is done to their sum) of x, branch F and surroundings S.
FORMULAS: dict[str, Formula] = {
    "pre": pre,
    "post": post,
    "peri": lambda x, F, S: (x, S.norm_out(F(S.norm_in(x))), same),
    "mixln": lambda x, F, S: (post if S.b <= S.L // 4 else pre)(x, F, S),
    "post_scaled": lambda x, F, S: (x, F(x) / (2 * S.L) ** 0.5, S.norm_main),
    "post_init": post,
    "branchnorm": lambda x, F, S: (x, min(1, S.share / 0.25) * F(x), S.norm_main),
    "none": lambda x, F, S: (x, F(x), same),
    "lns": lambda x, F, S: (x, F(S.norm_in(x) / S.b**0.5), same),
    "lns_learned": lambda x, F, S: (x, F(S.norm_in(x, S.b**-0.5)), same),
    "prores": lambda x, F, S: (x, rising(S) * F(S.norm_in(x)), same),
    "prores_post": lambda x, F, S: (x, rising(S) * F(x), S.norm_main),
    "prores_sandwich": lambda x, F, S: (x, rising(S) * S.norm_out(F(S.norm_in(x))), same),
    "deepscale": lambda x, F, S: (
        (1 - 2 / max(2, S.L)) ** 0.5 * x,
        (2 / max(2, S.L)) ** 0.5 * F(S.norm_in(x)),
        same,
    ),
    "gpas": gpas,
    "hybridnorm": hybridnorm,
    "hybridnorm_star": lambda x, F, S: (pre if S.b == 1 else hybridnorm)(x, F, S),
    "rezero": lambda x, F, S: (x, S.learned("branch_gain", shared=True) * F(x), same),
    "skipinit": lambda x, F, S: (x, S.learned("branch_gain") * F(x), same),
    "tfixup": lambda x, F, S: (x, F(x), same),
    "sigma_reparam": lambda x, F, S: (x, F(x), same),
    "b2t": b2t,
    "spannorm": spannorm,
    "lambda_skip": lambda_skip,
    "value_residual": pre,
}
NO_FINAL_NORM = {
    "post", "post_scaled", "post_init", "branchnorm", "none", "prores_post", "rezero", "skipinit", "tfixup",
    "sigma_reparam", "b2t", "spannorm", "gtrxl", "residual_dual",
}  # fmt: skip
EMBED_NORM = {"peri", "spannorm", "lambda_skip"}
QKV_NORM = {"hybridnorm", "hybridnorm_star"}
SHARE = 0.1
"""How much of the run is over."""


def attention(
    p: Params, name: str, config: RunConfig, trace: Trace, x: Tensor, values: list[Tensor]
) -> Tensor:
    """Causal attention, one head and one position at a time."""
    B, T, D = x.shape
    head = D // config.heads
    q, k, v = linear(p, f"{name}.qkv", x).split(D, dim=-1)
    q, k, v = (y.view(B, T, config.heads, head).transpose(1, 2) for y in (q, k, v))
    if config.scheme in QKV_NORM:
        S = Surroundings(p, f"{name}.", "", config.norm)
        q, k, v = S.norm_q(q), S.norm_k(k), S.norm_v(v)
    logits = qk_logits(config.qk_norm, p, f"{name}.qk_norm.", q, k)
    v = v_normed(config.v_norm, v)
    values.append(v)
    if config.scheme == "value_residual":
        v = (v + values[0]) / 2
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


def one_stream(
    x: Tensor, sublayers: list[tuple[Surroundings, Function]], trace: Trace, scheme: str
) -> Tensor:
    """The schemes with one residual stream, by FORMULAS."""
    trace.stream.append(x)
    for S, branch in sublayers:
        S.entered = x if S.attention else S.entered
        skip, added, after = FORMULAS[scheme](x, branch, S)
        trace.skip.append(skip)
        trace.branch.append(added)
        entered, x = S.entered, after(skip + added)
        if S.attention:
            sublayers[2 * S.b - 1][0].entered = entered
        else:
            trace.stream.append(x)
    return x


def forward(
    config: RunConfig, p: Params, tokens: Tensor, targets: Tensor, share: float = SHARE
) -> Trace:
    """The whole model and its mean loss over the counted targets, when `share` of a run is over."""
    trace, values = Trace(), list[Tensor]()
    outside = Surroundings(p, "", "", config.norm)
    x = p["tokens.weight"][tokens] + p["positions.weight"][: tokens.shape[1]]
    x = outside.embed_norm(x) if config.scheme in EMBED_NORM else x
    sublayers: list[tuple[Surroundings, Function]] = []
    for b in range(config.depth):
        block = f"blocks.{b}."

        def attend(z: Tensor, name: str = f"{block}attention.branch") -> Tensor:
            trace.reads.append(z)
            return attention(p, name, config, trace, z, values)

        def feed(z: Tensor, name: str = f"{block}ffn.branch") -> Tensor:
            trace.reads.append(z)
            return feed_forward(p, name, config, z)

        for name, branch in (("attention.", attend), ("ffn.", feed)):
            about = (p, block, name, config.norm, b + 1, config.depth, x, None, share)
            sublayers.append((Surroundings(*about), branch))
    if config.scheme in RUNS:
        own = Surroundings(p, "", "streams.", config.norm)
        x = RUNS[config.scheme](x, sublayers, trace, p, own)
    else:
        x = one_stream(x, sublayers, trace, config.scheme)
    x = x if config.scheme in NO_FINAL_NORM else outside.final_norm(x)
    trace.output = x @ p["head.weight"].T
    counted = targets >= 0
    chosen = trace.output.log_softmax(-1)[counted].gather(1, targets[counted][:, None])
    trace.loss = -chosen.mean()
    return trace
