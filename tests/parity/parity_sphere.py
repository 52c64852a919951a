"""Comparison with nGPT-pytorch: attention, FFN, residuals, output head and their gains are its own.

What is not: it has rotary positions and a gated FFN, which are left out and switched off (with SiLU
in our FFN), no biases and no absolute value of alpha; and it multiplies by s_qk the queries alone,
where the paper multiplies queries and keys: here it gets the square.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.nn.functional as F
from parity_kit import Comparison, Link, Peer, third
from parity_transformers import Ones
from torch import Tensor, nn

from normviz import RunConfig
from normviz.model.transformer import Transformer


class Squared(nn.Module):
    """One of its gains, squared."""

    def __init__(self, scale: nn.Module) -> None:
        super().__init__()
        self.inner = scale

    def forward(self) -> Tensor:
        return self.inner() ** 2


class One(nn.Module):
    """The gain of a gate that is switched off."""

    def forward(self) -> float:
        return 1.0


class Block(nn.Module):
    """Attention and FFN as its model calls them, without rotary positions."""

    def __init__(self, attention: nn.Module, ffn: nn.Module) -> None:
        super().__init__()
        self.attention, self.ffn = attention, ffn

    def forward(self, x: Tensor) -> Tensor:
        return self.ffn(self.attention(x))


def ngpt(config: RunConfig, ours: Transformer) -> Peer:
    theirs = peer(config, ours.tokens.num_embeddings)
    for block in ours.blocks:
        block.ffn.branch.activation = F.silu
        for wire in (block.attention, block.ffn):
            with torch.no_grad():
                wire.branch_gain.weight.abs_()
    links = [
        Link("head.weight", theirs.to_logits.linear.weight),
        Link("logit_gain.weight", theirs.logit_scale.scale),
    ]
    for b, (at, ff) in enumerate(theirs.layers):
        links += branch_links(f"blocks.{b}", at, ff)
        at.fn.qk_scale = Squared(at.fn.qk_scale)
        ff.fn.to_hidden, ff.fn.hidden_scale = Ones(), One()
    blocks = nn.ModuleList(Block(at, ff) for at, ff in theirs.layers)

    def run(_: Tensor, x: Tensor) -> Tensor:
        for block in blocks:
            x = block(x)
        return x

    def head(x: Tensor) -> Tensor:
        return theirs.to_logits(x) * theirs.logit_scale()

    return Peer(theirs, run, list(blocks), links, head)


def peer(config: RunConfig, vocabulary: int) -> Any:
    """Its model with the paper's constants; its own start differs in two."""
    from nGPT_pytorch import nGPT

    for part in vars(sys.modules[nGPT.__module__]).values():
        # Its modules define __eq__ and so lose their hash, without which nn.Module can't list them.
        if isinstance(part, type) and part.__hash__ is None:
            part.__hash__ = nn.Module.__hash__
    return nGPT(
        num_tokens=vocabulary,
        dim=config.width,
        depth=config.depth,
        heads=config.heads,
        dim_head=config.width // config.heads,
        ff_expand_factor=config.ffn_ratio * 1.5,  # it takes two thirds of that
        alpha_init=0.05,  # it has 1 / depth
        s_qk_scale=config.width**-0.5,  # it has 1 / d, of the queries alone
        manual_norm_weights=True,
        add_value_residual=False,
    )


def branch_links(block: str, at: Any, ff: Any) -> list[Link]:
    """Of the two sublayers of a block. Its gains are stored as ours are."""
    attention, ffn = f"{block}.attention", f"{block}.ffn"
    links = [
        Link(f"{attention}.branch.qkv.weight", map_.linear.weight, third(i))
        for i, map_ in enumerate((at.fn.to_q, at.fn.to_k, at.fn.to_v))
    ]
    return [
        *links,
        Link(f"{attention}.branch.out.weight", at.fn.to_out.linear.weight),
        Link(f"{attention}.branch.qk_gain.weight", at.fn.qk_scale.scale),
        Link(f"{attention}.branch_gain.weight", at.branch_scale.scale),
        Link(f"{ffn}.branch.up.weight", ff.fn.to_gate.linear.weight),
        Link(f"{ffn}.branch.hidden_gain.weight", ff.fn.gate_scale.scale),
        Link(f"{ffn}.branch.down.weight", ff.fn.to_out.linear.weight),
        Link(f"{ffn}.branch_gain.weight", ff.branch_scale.scale),
    ]


COMPARISONS = (
    Comparison(
        "ngpt",
        "nGPT-pytorch nGPT, its FFN ungated, its s_qk squared",
        ngpt,
        norm="l2",
        lacks=((r"(qkv|out|up|down)\.bias$", 0.0),),
    ),
)
