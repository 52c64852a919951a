"""Sites, the named places of a residual stack where a tap gets a tensor; they mean the same in every scheme.

Of each sublayer i = 0..2L-1 (attention of block 1, FFN of block 1, attention of block 2, ...):

    stream_in    input of the sublayer
    skip         the skip path as it enters the sum (after its gain and norm)
    branch_in    input of the attention or FFN
    branch_out   branch output as it enters the sum (after its gain and norm)
    stream_out   output of the sublayer

Of the whole model: `stream` b = 0..L, the residual stream after the embedding (0) and each block;
`attn_logits` and `attn_weights` b = 1..L, [B*H, T, T]; `final`, the input of the output head;
`logits`, the model's output.

A recurrent layer has other sites: `branch_in`, its inputs; `product_x` and `product_h`, what its two matrices
give; and `stream` t = 0..T, its hidden state after each time step.
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
    "logits",
)


class Tap(Protocol):
    """Gets a tensor at a site; returns it, or a view of it that the model uses from there on."""

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor: ...


def untapped(_site: str, _index: int, x: Tensor, /) -> Tensor:
    """The tap that records nothing: x [...] to x."""
    return x
