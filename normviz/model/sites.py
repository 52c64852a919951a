"""Named places of a model where a number can be taken; they mean the same thing in every scheme.

Of each sublayer i = 0..2L-1 (attention of block 1, FFN of block 1, attention of block 2, ...):

    stream_in    what enters the sublayer
    skip         the skip path as it enters the sum (after its gain and norm)
    branch_in    what the attention or FFN sees
    branch_out   what is added to the skip path (after its gain and norm)
    stream_out   what leaves the sublayer

Of the whole model: `stream` b = 0..L, the residual stream after the embedding (0) and each block;
`attn_logits` and `attn_weights` b = 1..L, [B*H, T, T]; `final`, what the output head sees.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

SITES = (
    "stream",
    "stream_in",
    "skip",
    "branch_in",
    "branch_out",
    "stream_out",
    "attn_logits",
    "attn_weights",
    "final",
)


class Tap(Protocol):
    """Sees a tensor at a site; returns it, or a view that stands for it from there on."""

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor: ...


def untapped(_site: str, _index: int, x: Tensor, /) -> Tensor:
    """The tap that watches nothing."""
    return x
