"""Twins of the schemes with several streams, or without a running sum: as their papers write them.

Each maps the embedding and the list of sublayers [(surroundings S, branch F)] to what the final norm
reads, and tells `trace` what probes see: the state after each block, streams side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

Sublayers = list[tuple[Any, Callable[[Tensor], Tensor]]]
N = 4


def rms(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


def see(trace: Any, at: int, state: Tensor) -> Tensor:
    """A state after an FFN is the state after a block."""
    if at % 2:
        trace.stream.append(state)
    return state


def tell(trace: Any, skip: Tensor, branch: Tensor) -> None:
    trace.skip.append(skip)
    trace.branch.append(branch)


def residual_dual(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    D = x.shape[-1]
    state = torch.cat([x, x], -1)
    trace.stream.append(state)
    for at, (S, F) in enumerate(sublayers):
        x, r = state[..., :D], state[..., D:]
        f = F(x)
        tell(trace, x, f)
        state = see(trace, at, torch.cat([S.norm_main(x + f), r + f], -1))
    return state[..., :D] + own.norm_dual(state[..., D:])


def siamese(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    D = x.shape[-1]
    state = torch.cat([x, x], -1)
    trace.stream.append(state)
    for at, (S, F) in enumerate(sublayers):
        x, y = state[..., :D], state[..., D:]
        out = F(S.norm_in(x + S.norm_y(y)))
        tell(trace, x, out / math.sqrt(2 * S.b))
        state = torch.cat([S.norm_x(x + out / math.sqrt(2 * S.b)), y + out], -1)
        state = see(trace, at, state)
    return own.norm_x(state[..., :D]) + own.norm_y(state[..., D:])


def hyper(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    D = x.shape[-1]
    state = torch.cat([x] * N, -1)
    trace.stream.append(state)
    for at, (S, F) in enumerate(sublayers):
        g = {k: p[f"{S.block}{S.name}gain_{k}"] for k in
             ("start", "write", "of_token", "write_of_token", "scale")}  # fmt: skip
        copies = [state[..., i * D : (i + 1) * D] for i in range(N)]
        A = [g["start"][i] + g["scale"][0] * torch.tanh(rms(c) @ g["of_token"])
             for i, c in enumerate(copies)]  # fmt: skip
        B = [g["write"][i] + g["scale"][1] * torch.tanh(rms(c) @ g["write_of_token"])
             for i, c in enumerate(copies)]  # fmt: skip
        h = sum(A[i][..., :1] * copies[i] for i in range(N))
        kept = [sum(A[i][..., 1 + j, None] * copies[i] for i in range(N)) for j in range(N)]
        f = F(S.norm_in(h))
        added = [b[..., None] * f for b in B]
        tell(trace, torch.cat(kept, -1), torch.cat(added, -1))
        state = torch.cat([k + a for k, a in zip(kept, added, strict=True)], -1)
        state = see(trace, at, state)
    return sum(state[..., i * D : (i + 1) * D] for i in range(N))


def denseformer(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    outputs = [x]
    trace.stream.append(x)
    for at, (S, F) in enumerate(sublayers):
        f = F(S.norm_in(x))
        tell(trace, x, f)
        x = x + f
        if at % 2:
            outputs.append(x)
            alpha = p[f"streams.gains.{at // 2}"]
            x = sum(a * y for a, y in zip(alpha, outputs, strict=True))
            trace.stream.append(x)
    return x


def attnres(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    values, h = [x], x
    trace.stream.append(x)
    for at, (S, F) in enumerate(sublayers):
        values.append(F(S.norm_in(h)))
        tell(trace, h, values[-1])
        w = p[f"{S.block}{S.name}query_gain"]
        scores = torch.stack([(rms(v) * w).sum(-1).exp() for v in values])
        shares = scores / scores.sum(0)
        h = see(trace, at, sum(s[..., None] * v for s, v in zip(shares, values, strict=True)))
    return h


def delta_attnres(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    values = [x]
    trace.stream.append(x)
    for at, (S, F) in enumerate(sublayers):
        h = x
        if at:
            w = p[f"{S.block}{S.name}query_gain"]
            scores = torch.stack([(rms(v) * w).sum(-1).exp() for v in values])
            shares = scores / scores.sum(0)
            h = x + sum(s[..., None] * v for s, v in zip(shares, values, strict=True))
        values.append(F(S.norm_in(h)))
        tell(trace, x, values[-1])
        x = see(trace, at, x + values[-1])
    return x


def geonorm(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    trace.stream.append(x)
    for at, (S, F) in enumerate(sublayers):
        w, s = (p[f"{S.block}{S.name}gain_{k}"] for k in ("angle", "shift"))
        f, size = F(x), x.pow(2).sum(-1, keepdim=True).sqrt()
        v = f - (f * x).sum(-1, keepdim=True) * x / (size + 1e-8).pow(2)
        length = v.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8
        theta = torch.minimum(length / (size + 1e-8), torch.full_like(size, math.pi / 4))
        phi = torch.minimum((w * theta + s) / S.b, torch.full_like(size, math.pi / 4))
        skip, turned = phi.cos() * x, phi.sin() * size * v / length
        tell(trace, skip, turned)
        x = see(trace, at, skip + turned)
    return x


def deep_delta(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    trace.stream.append(x)
    for at, (S, F) in enumerate(sublayers):
        w, b, u, c = (
            p[f"{S.block}{S.name}gain_{k}"] for k in ("step", "step_start", "value", "value_start")
        )
        z = S.norm_in(x)
        f = F(z)
        k = f / (f.pow(2).sum(-1, keepdim=True) + 1e-10).sqrt()
        beta = 2 * torch.sigmoid((z * w).sum(-1, keepdim=True) + b)
        v = 4 * torch.sigmoid((x * u).sum(-1, keepdim=True) + c)
        moved = beta * (v - (k * x).sum(-1, keepdim=True)) * k
        tell(trace, x, moved)
        x = see(trace, at, x + moved)
    return x


def gtrxl(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
    trace.stream.append(x)
    for at, (S, F) in enumerate(sublayers):

        def both(part: str, y: Tensor, x: Tensor, S: Any = S) -> Tensor:
            W, U = (p[f"{S.block}{S.name}gate_{part}_{of}.weight"] for of in "yx")
            return y @ W.T + x @ U.T

        y = F(S.norm_in(x)).clamp(min=0)
        r = 1 / (1 + (-both("reset", y, x)).exp())
        keep = 1 / (1 + (both("update", y, x) - p[f"{S.block}{S.name}gain_bias"]).exp())
        skip, taken = keep * x, (1 - keep) * both("new", y, r * x).tanh()
        tell(trace, skip, taken)
        x = see(trace, at, skip + taken)
    return x


def of_permutations(logits: Tensor) -> Tensor:
    weights = logits.exp() / logits.exp().sum(-1, keepdim=True)
    R = torch.zeros(*logits.shape[:-1], N, N, dtype=logits.dtype)
    for r, order in enumerate(permutations(range(N))):
        for i, j in enumerate(order):
            R[..., i, j] = R[..., i, j] + weights[..., r]
    return R


def of_exchanges(logits: Tensor) -> Tensor:
    a = [torch.sigmoid(logits[..., 2 * i] - logits[..., 2 * i + 1]) for i in range(2)]
    rows = [
        torch.stack([(a[0] if i // 2 == j // 2 else 1 - a[0]) * (a[1] if i % 2 == j % 2 else 1 - a[1])
                     for j in range(N)], -1) for i in range(N)
    ]  # fmt: skip
    return torch.stack(rows, -2)


def unmixed(logits: Tensor) -> Tensor:
    return torch.eye(N, dtype=logits.dtype).expand(*logits.shape[:-1], N, N)


def constrained(matrix: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Hyper-connections with a mixing matrix of some logits."""

    def run(x: Tensor, sublayers: Sublayers, trace: Any, p: Any, own: Any) -> Tensor:
        D = x.shape[-1]
        state = torch.cat([x] * N, -1)
        trace.stream.append(state)
        for at, (S, F) in enumerate(sublayers):
            W, b, a = (p[f"{S.block}{S.name}gain_{k}"] for k in ("of_state", "start", "scale"))
            z = rms(state) @ W
            q = torch.sigmoid(a[0] * z[..., :N] + b[:N])
            out = 2 * torch.sigmoid(a[1] * z[..., N : 2 * N] + b[N : 2 * N])
            R = matrix(a[-1] * z[..., 2 * N :] + b[2 * N :])
            copies = [state[..., i * D : (i + 1) * D] for i in range(N)]
            f = F(S.norm_in(sum(q[..., i, None] * copies[i] for i in range(N))))
            kept = [sum(R[..., i, j, None] * copies[i] for i in range(N)) for j in range(N)]
            added = [out[..., j, None] * f for j in range(N)]
            tell(trace, torch.cat(kept, -1), torch.cat(added, -1))
            state = torch.cat([k + f for k, f in zip(kept, added, strict=True)], -1)
            state = see(trace, at, state)
        return sum(state[..., i * D : (i + 1) * D] for i in range(N)) / N

    return run


RUNS = {
    "delta_attnres": delta_attnres,
    "geonorm": geonorm,
    "deep_delta": deep_delta,
    "gtrxl": gtrxl,
    "mhc_lite": constrained(of_permutations),
    "kromhc": constrained(of_exchanges),
    "hc_identity": constrained(unmixed),
    "residual_dual": residual_dual,
    "siamese": siamese,
    "hyper": hyper,
    "denseformer": denseformer,
    "attnres": attnres,
}
