"""Post-LN with a stronger skip path."""

from __future__ import annotations

from ..scheme import Constant, Gain, Matrix, Place, Scheme, Slots


def deepnorm(place: Place) -> Slots:
    """Post-LN with skip gain (2L)^(1/4); arXiv:2203.00555."""
    return Slots(norm_main=True, skip_gain=Gain((2 * place.depth) ** 0.25))


def deepnorm_weight_gain(place: Place, matrix: Matrix) -> float:
    """Weight gain (8L)^(-1/4), and 1 for queries and keys; arXiv:2203.00555."""
    return 1.0 if matrix == "query_key" else (8 * place.depth) ** -0.25


def keel(place: Place) -> Slots:
    """Norms before the branch and after the sum, skip gain 2L; Pre-LN in sublayer 1; arXiv:2601.19895."""
    if place.number == 1:
        return Slots(norm_in=True)
    return Slots(norm_in=True, norm_main=True, skip_gain=Gain(2.0 * place.depth))


SCHEMES = (
    Scheme(
        key="deepnorm",
        label="DeepNorm",
        order=60,
        family="Scaled skip",
        sentence="Post-LN whose skip is multiplied by alpha, and whose value, output and FFN "
        "matrices start multiplied by beta, which is below 1.",
        trouble="Steady in depth, not in learning rate: at high rates it collapses where Pre-LN "
        "still trains.",
        source="Wang et al. 2022, arXiv:2203.00555 (the constants of a decoder-only stack)",
        used_by="GLM-130B (arXiv:2210.02414)",
        oracle="x-transformers Decoder(pre_norm=False, scale_residual_constant)",
        slots=deepnorm,
        final_norm=False,
        weight_gain=deepnorm_weight_gain,
        constants=(
            Constant("skip_gain", r"\alpha", "(2L)^{1/4}", "(2 * L) ** 0.25"),
            Constant("weight_gain", r"\beta", "(8L)^{-1/4}"),
        ),
    ),
    Scheme(
        key="admin",
        label="Admin",
        order=180,
        family="Scaled skip",
        sentence="Post-LN whose skip path has a learned gain omega a channel; one forward pass "
        "sets it so that no sublayer outweighs what came before.",
        trouble="The start depends on the first batch, and the gain grows with depth: deep "
        "sublayers change the stream little at first.",
        source="Liu et al. 2020, arXiv:2004.08249; Transformer-Clinic",
        oracle="x-transformers Decoder(pre_norm=False, scale_residual)",
        slots=lambda _: Slots(norm_main=True, skip_gain=Gain(1.0, "channel")),
        final_norm=False,
        profiled=True,
        constants=(Constant("skip_gain", r"\omega", r"\text{learned, from one forward pass}"),),
    ),
    Scheme(
        key="keel",
        label="KEEL",
        order=190,
        family="Scaled skip",
        sentence="A norm before each branch and one after the sum, with the skip multiplied by the "
        "number of sublayers; the first sublayer is plain Pre-LN.",
        trouble="alpha = 2L is taken from independent re-implementations. The first sublayer "
        "has far larger gradients than the others.",
        source="Chen and Wei 2026, arXiv:2601.19895",
        oracle="x-transformers Decoder(pre_and_post_norm, scale_residual_constant), first "
        "sublayer plain",
        slots=keel,
        final_norm=False,
        constants=(Constant("skip_gain", r"\alpha", "2L", "2 * L"),),
    ),
)
