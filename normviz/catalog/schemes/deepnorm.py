"""DeepNorm: Post-LN with a stronger skip and smaller branches, for a decoder-only stack."""

from __future__ import annotations

from ..scheme import Constant, Place, Scheme, Slots


def stronger_skip(place: Place) -> Slots:
    return Slots(norm_main=True, skip_gain=(2 * place.depth) ** 0.25)


def smaller_branch(place: Place) -> float:
    return (8 * place.depth) ** -0.25


SCHEMES = (
    Scheme(
        key="deepnorm",
        label="DeepNorm",
        order=60,
        sentence="Post-LN whose skip is multiplied by alpha, and whose value, output and FFN "
        "matrices start beta times smaller.",
        trouble="Steady in depth, not in learning rate: at high rates it collapses where Pre-LN "
        "still trains.",
        source="Wang et al. 2022, arXiv:2203.00555",
        slots=stronger_skip,
        final_norm=False,
        weight_gain=smaller_branch,
        constants=(
            Constant("skip_gain", r"\alpha", "(2L)^{1/4}"),
            Constant("weight_gain", r"\beta", "(8L)^{-1/4}"),
        ),
    ),
)
