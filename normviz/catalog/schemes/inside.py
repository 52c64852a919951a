"""Norms inside the branches."""

from __future__ import annotations

from math import log

from ..scheme import Constant, Gain, Matrix, Place, Scheme, Slots


def subln_weight_gain(place: Place, matrix: Matrix) -> float:
    """Weight gain sqrt(ln 2L), and 1 for queries and keys; Magneto, arXiv:2210.06423."""
    return 1.0 if matrix == "query_key" else log(2 * place.depth) ** 0.5


def normformer(place: Place) -> Slots:
    """Pre-LN, at attention with head gains and a norm of its output, at the FFN with a norm before
    its last matrix and a learned skip gain; arXiv:2110.09456."""
    if place.branch == "attention":
        return Slots(norm_in=True, norm_out=True, head_gain=True)
    return Slots(norm_in=True, norm_inner=True, skip_gain=Gain(1.0, "channel"))


def hybridnorm(place: Place) -> Slots:
    """Norms of queries, keys and values at attention, a norm before the fork at the FFN; arXiv:2503.04598."""
    return Slots(norm_qkv=True) if place.branch == "attention" else Slots(norm_fork=True)


def hybridnorm_star(place: Place) -> Slots:
    """HybridNorm with a norm before each branch in block 1, and none before its fork; arXiv:2503.04598."""
    if place.block > 1:
        return hybridnorm(place)
    return Slots(norm_in=True, norm_qkv=place.branch == "attention")


SCHEMES = (
    Scheme(
        key="subln",
        label="Sub-LN",
        order=270,
        family="Norms inside the branch",
        sentence="Pre-LN with one more norm in each branch, before its last matrix, and "
        "value, output and FFN matrices that start sqrt(ln 2L) times larger.",
        trouble="The norm in the FFN is as wide as its hidden layer, which costs time.",
        source="Wang et al. 2022 (Magneto), arXiv:2210.06423",
        used_by="torchscale, BitNet b1.58",
        oracle="transformers BitNetModel",
        slots=lambda _: Slots(norm_in=True, norm_inner=True),
        final_norm=True,
        weight_gain=subln_weight_gain,
        constants=(Constant("weight_gain", r"\gamma", r"\sqrt{\ln 2L}"),),
    ),
    Scheme(
        key="normformer",
        label="NormFormer",
        order=280,
        family="Norms inside the branch",
        sentence="Pre-LN with a gain a head, a norm after attention, a norm before the FFN's "
        "last matrix, and a learned gain on the FFN's skip path.",
        trouble="The gain of a head is applied before the output matrix, as in the paper; the "
        "published code applies it after that matrix.",
        source="Shleifer et al. 2021, arXiv:2110.09456",
        oracle="x-transformers Decoder(attn_head_scale, ff_post_act_ln, sandwich_norm, "
        "scale_residual), some of them in one branch",
        slots=normformer,
        final_norm=True,
        constants=(Constant("skip_gain", "r", r"\text{learned, starts at 1}"),),
    ),
    Scheme(
        key="hybridnorm",
        label="HybridNorm",
        order=290,
        family="Norms inside the branch",
        sentence="Attention normalises its queries, keys and values and nothing else; the FFN "
        "normalises the stream before the fork, skip path included.",
        trouble="The norm before the fork makes the stream's size depend on the last norm alone.",
        source="Zhuo et al. 2025, arXiv:2503.04598",
        slots=hybridnorm,
        final_norm=True,
    ),
    Scheme(
        key="hybridnorm_star",
        label="HybridNorm*",
        order=300,
        family="Norms inside the branch",
        sentence="HybridNorm whose first block has Pre-LN's norms at the start of both branches.",
        trouble="As HybridNorm.",
        source="Zhuo et al. 2025, arXiv:2503.04598",
        slots=hybridnorm_star,
        final_norm=True,
    ),
)
