"""The slow, obvious twin of the model: every scheme as its paper writes it, without wires or taps.

A new scheme needs one line in FORMULAS (and its key below, if it has those norms); then the tests
of the model and of every probe cover it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import twin_sphere
from norm_twins import qk_logits, v_normed
from torch import Tensor
from twin_parts import Params, Surroundings, Trace, linear
from twin_streams import RUNS

from normviz import RunConfig

Function = Callable[[Tensor], Tensor]
Formula = Callable[[Tensor, Function, Any], tuple[Tensor, Tensor, Function]]


def same(x: Tensor) -> Tensor:
    return x


def pre(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, F(S.norm_in(x)), same


def post(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, F(x), S.norm_main


def around(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, S.norm_out(F(S.norm_in(x))), same


def rising(S: Any) -> float:
    return min(1, S.share / (0.25 * S.b / S.L))


def layer_scalar(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    after = same if S.attention else lambda y: S.learned("main_gain") * y
    return x, S.norm_out(F(S.norm_in(x))), after


def residual_scaling(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    f = F(S.norm_in(x)) + S.learned("branch_shift")
    return (
        S.learned("skip_gain") * (x + S.learned("skip_shift")),
        S.learned("branch_gain") * f,
        same,
    )


def beam(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    k = 2 * S.b + (not S.attention)
    return ((k - 1) / k) ** 0.5 * x, S.norm_out(F(S.norm_in(x))) / k**0.5, same


def gated_peri(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    w = S.learned("branch_gain") / 0.3
    keep = (torch.sigmoid(-w) * (1 + torch.sigmoid(w))).sqrt()
    return keep * x, torch.sigmoid(w) * S.norm_out(F(S.norm_in(x))), same


def keel(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    first = S.b == 1 and S.attention
    return pre(x, F, S) if first else (2 * S.L * x, F(S.norm_in(x)), S.norm_main)


def gpas(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    q = S.learned("gate", shared=True)
    return x, F(S.norm_in(x)), lambda y: y - torch.nn.functional.silu(q) * y.detach()


def normformer(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    if S.attention:
        return x, S.norm_out(F(S.norm_in(x))), same
    return S.learned("skip_gain") * x, F(S.norm_in(x)), same


def hybridnorm(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    if S.attention:
        return x, F(x), same
    z = S.norm_fork(x)
    return z, F(z), same


def minimax(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    z = S.norm_fork(x)
    return z, F(z), same


def b2t(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return (x if S.attention else S.entered + x), F(x), S.norm_main


def spannorm(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return (x if S.attention else S.entered), F(x), S.norm_main


def parallel(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, F(S.attentions_norm_in(S.entered)), same


def parallel_two(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    return x, F(S.norm_in(S.entered)), same


def lambda_skip(x: Tensor, F: Function, S: Any) -> tuple[Tensor, Tensor, Function]:
    if S.attention:
        x = S.learned("stream_gain") * x + S.learned("embed_gain") * S.embedding
    return pre(x, F, S)


# (skip, branch, what is done to their sum) of x, branch F and surroundings S.
FORMULAS: dict[str, Formula] = {
    "pre": pre,
    "pre_nofinal": pre,
    "post": post,
    "pre_post_main": lambda x, F, S: (x, F(S.norm_in(x)), S.norm_main),
    "mixln": lambda x, F, S: (post if S.b <= S.L // 4 else pre)(x, F, S),
    "post_scaled": lambda x, F, S: (x, F(x) / (2 * S.L) ** 0.5, S.norm_main),
    "post_init": post,
    "branchnorm": lambda x, F, S: (x, min(1, S.share / 0.25) * F(x), S.norm_main),
    "none": lambda x, F, S: (x, F(x), same),
    "sandwich": around,
    "peri": around,
    "dssn": lambda x, F, S: (x, S.norm_out(F(S.norm_in(x)), S.L**-0.5), same),
    "beam": beam,
    "gated_peri": gated_peri,
    "layer_scalar": layer_scalar,
    "resp": lambda x, F, S: (x, S.norm_out(F(x)), same),
    "resp_zero": lambda x, F, S: (x, S.norm_out(F(x), 0.0), same),
    "ngpt": twin_sphere.between,
    "deepnorm": lambda x, F, S: ((2 * S.L) ** 0.25 * x, F(x), S.norm_main),
    "admin": lambda x, F, S: (S.learned("skip_gain") * x, F(x), S.norm_main),
    "keel": keel,
    "layerscale": lambda x, F, S: (x, S.learned("branch_gain") * F(S.norm_in(x)), same),
    "resid_const": lambda x, F, S: (x, F(S.norm_in(x)) / S.L**0.5, same),
    "completep": lambda x, F, S: (x, F(S.norm_in(x)) / S.L, same),
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
    "residual_scaling": residual_scaling,
    "gpas": gpas,
    "subln": pre,
    "normformer": normformer,
    "hybridnorm": hybridnorm,
    "hybridnorm_star": lambda x, F, S: (pre if S.b == 1 else hybridnorm)(x, F, S),
    "rezero": lambda x, F, S: (x, S.learned("branch_gain", shared=True) * F(x), same),
    "skipinit": lambda x, F, S: (x, S.learned("branch_gain") * F(x), same),
    "tfixup": lambda x, F, S: (x, F(x), same),
    "sigma_reparam": lambda x, F, S: (x, F(x), same),
    "b2t": b2t,
    "spannorm": spannorm,
    "skip_norm": minimax,
    "parallel": parallel,
    "parallel_two": parallel_two,
    "lambda_skip": lambda_skip,
    "value_residual": pre,
}
FINAL_NORM = {
    "pre", "mixln", "sandwich", "peri", "dssn", "beam", "gated_peri", "resp", "resp_zero",
    "layerscale", "resid_const", "completep", "lns", "lns_learned", "prores", "gpas", "subln",
    "layer_scalar", "prores_sandwich", "deepscale", "residual_scaling",
    "normformer", "hybridnorm", "hybridnorm_star", "skip_norm", "parallel", "parallel_two",
    "lambda_skip", "value_residual", "denseformer", "attnres", "siamese", "hyper", "mhc",
    "delta_attnres", "geonorm", "deep_delta", "mhc_lite", "kromhc", "hc_identity",
}  # fmt: skip
EMBED_NORM = {"peri", "spannorm", "lambda_skip"}
INNER_NORM = {("subln", "attention"), ("subln", "ffn"), ("normformer", "ffn")}
QKV_NORM = {"hybridnorm", "hybridnorm_star"}
HEAD_GAIN = {"normformer"}
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
    S = Surroundings(p, f"{name}.", "", config.norm)
    if config.scheme in QKV_NORM:
        q, k, v = S.norm_q(q), S.norm_k(k), S.norm_v(v)
    if config.scheme == "ngpt":
        q, k = (twin_sphere.compared(p, name, y) for y in (q, k))
    logits = qk_logits(config.qk_norm, p, f"{name}.qk_norm.", q, k)
    v = v_normed(config.v_norm, v)
    values.append(v)
    if config.scheme == "value_residual":
        v = (v + values[0]) / 2
    rows = [torch.softmax(logits[:, :, i, : i + 1], -1) for i in range(T)]
    weights = torch.stack([torch.nn.functional.pad(row, (0, T - row.shape[-1])) for row in rows], 2)
    trace.logits.append(logits)
    trace.weights.append(weights)
    mixed = weights @ v
    if config.scheme in HEAD_GAIN:
        mixed = p[f"{name}.head_gain"][:, None, None] * mixed
    mixed = mixed.transpose(1, 2).reshape(B, T, D)
    if (config.scheme, "attention") in INNER_NORM:
        mixed = S.norm_inner(mixed)
    return linear(p, f"{name}.out", mixed)


def feed_forward(p: Params, name: str, config: RunConfig, x: Tensor) -> Tensor:
    inner = linear(p, f"{name}.up", x)
    if config.scheme == "ngpt":
        inner = twin_sphere.hidden(p, name, inner, config.width)
    if config.activation == "relu":
        inner = inner.clamp(min=0)
    else:
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    if (config.scheme, "ffn") in INNER_NORM:
        inner = Surroundings(p, f"{name}.", "", config.norm).norm_inner(inner)
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
    x = twin_sphere.unit(x) if config.scheme == "ngpt" else x
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
    x = outside.final_norm(x) if config.scheme in FINAL_NORM else x
    trace.output = x @ p["head.weight"].T
    if config.scheme == "ngpt":
        trace.output = twin_sphere.logits(p, trace.output, config.width)
    counted = targets >= 0
    chosen = trace.output.log_softmax(-1)[counted].gather(1, targets[counted][:, None])
    trace.loss = -chosen.mean()
    return trace
