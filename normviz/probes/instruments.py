"""One function a probe: what a step left behind, to one number a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..catalog import PROBES
from ..config import RunConfig
from ..nn.flat import Flat
from .watch import Watch

SITES = ("stream", "skip", "branch_out", "attn_logits", "attn_weights")
GRADIENT_SITES = ("stream",)


@dataclass
class Seen:
    """What one step left behind. `before` holds the blocks' parameters before its update, [L, P]."""

    config: RunConfig
    watch: Watch
    flat: Flat
    before: Tensor | None

    @cached_property
    def stream(self) -> Tensor:
        """[L+1, B*T, D]"""
        return self.watch.stack("stream")


def rms(x: Tensor) -> Tensor:
    """Root mean square of everything but the first axis."""
    flat = x.flatten(1)
    return torch.linalg.vector_norm(flat, dim=1) / flat.shape[1] ** 0.5


def grad_block(seen: Seen) -> Tensor:
    return torch.linalg.vector_norm(seen.flat.block_grads, dim=1)


def grad_w2(seen: Seen) -> Tensor:
    columns = seen.flat.columns["ffn.branch.down.weight"]
    return torch.linalg.vector_norm(seen.flat.block_grads[:, columns], dim=1)


def grad_qk(seen: Seen) -> Tensor:
    start = seen.flat.columns["attention.branch.qkv.weight"].start
    query_and_key = slice(start, start + 2 * seen.config.width**2)
    return torch.linalg.vector_norm(seen.flat.block_grads[:, query_and_key], dim=1)


def grad_hidden(seen: Seen) -> Tensor:
    return seen.watch.gradient_norms("stream")


def stream_rms(seen: Seen) -> Tensor:
    return rms(seen.stream)


def branch_ratio(seen: Seen) -> Tensor:
    ratio = rms(seen.watch.stack("branch_out")) / rms(seen.watch.stack("skip"))
    return ratio.view(-1, 2).mean(1)  # attention and FFN of each block


def update_ratio(seen: Seen) -> Tensor:
    if seen.before is None:
        return torch.full((len(seen.flat.blocks),), torch.nan)
    step = torch.linalg.vector_norm(seen.flat.blocks - seen.before, dim=1)
    return step / torch.linalg.vector_norm(seen.before, dim=1)


def token_cosine(seen: Seen) -> Tensor:
    """Through the spread of unit vectors: (1 - cos) = |u - mean u|^2 T / (T - 1), which stays exact
    to 1e-14 where the cosine itself would round to 1."""
    T = seen.config.seq_len
    unit = torch.nn.functional.normalize(seen.stream, dim=-1)
    unit = unit.unflatten(1, (-1, T))  # [L+1, B, T, D]
    spread = (unit - unit.mean(2, keepdim=True)).square_().sum((2, 3)) / (T - 1)
    return 1.0 - spread.mean(1, dtype=torch.float64)


def _visible(logits: Tensor, T: int) -> Tensor:
    """Logits with hidden positions at zero. [L, B*H*T, T]"""
    mask = torch.ones(T, T, dtype=logits.dtype, device=logits.device).tril()
    return (logits.unflatten(1, (-1, T)) * mask).flatten(1, 2)


def attention(seen: Seen) -> tuple[Tensor, Tensor]:
    """Largest absolute logit, and entropy as a fraction of its maximum, of each block.

    With z the logits and p the weights: entropy = max z - ln max p - sum p z, because
    ln sum exp z = max z - ln max p.
    """
    T = seen.config.seq_len
    logits, weights = seen.watch.stack("attn_logits"), seen.watch.stack("attn_weights")
    visible = _visible(logits, T)
    low, high = torch.aminmax(visible.flatten(1), dim=1)
    mean = torch.linalg.vecdot(weights, visible)
    entropy = logits.amax(-1) - weights.amax(-1).log() - mean  # [L, B*H*T]
    most = torch.arange(1, T + 1, device=logits.device).log()
    fraction = entropy.unflatten(1, (-1, T))[..., 1:] / most[1:]
    return torch.maximum(high, -low), fraction.mean((1, 2))


INSTRUMENTS: dict[tuple[str, ...], Callable[[Seen], Tensor | tuple[Tensor, ...]]] = {
    ("grad_block",): grad_block,
    ("grad_w2",): grad_w2,
    ("grad_qk",): grad_qk,
    ("grad_hidden",): grad_hidden,
    ("stream_rms",): stream_rms,
    ("branch_ratio",): branch_ratio,
    ("update_ratio",): update_ratio,
    ("token_cosine",): token_cosine,
    ("attn_logit_max", "attn_entropy"): attention,
}
ROWS = {key: i for i, key in enumerate(PROBES.keys())}


def watch() -> Watch:
    """A fresh tap for one step, on the sites that the instruments read."""
    return Watch(SITES, GRADIENT_SITES)


@torch.no_grad()
def read(seen: Seen) -> NDArray[np.float64]:
    """All probes of one step as [probes, L+1]; layers a probe does not have stay NaN."""
    out = torch.full((len(ROWS), seen.config.depth + 1), torch.nan, dtype=torch.float64)
    for keys, instrument in INSTRUMENTS.items():
        values = instrument(seen)
        for key, value in zip(keys, values if isinstance(values, tuple) else (values,), strict=True):
            out[ROWS[key], PROBES[key].first_layer :] = value
    return out.numpy()
