"""Squashing functions in place of a norm."""

from __future__ import annotations

from ..norm import BETA, GAMMA, Learned, Norm

ALPHA = Learned("alpha", r"\alpha", "0.5", single=True)

NORMS = (
    Norm(
        "dyt",
        "DyT",
        r"\gamma \odot \tanh(\alpha x) + \beta",
        "No statistics at all: squashes every channel by a tanh with one learned slope.",
        0.0,
        "Zhu et al. 2025, arXiv:2503.10622",
        order=130,
        code="DyT({width}, {eps})",
        learns=(ALPHA, GAMMA, BETA),
        oracle="x-transformers DynamicTanh",
    ),
    Norm(
        "derf",
        "Derf",
        r"\gamma \odot \mathrm{erf}(\alpha x + s) + \beta",
        "DyT with the error function and a learned shift before it.",
        0.0,
        "Chen et al. 2025, arXiv:2512.10938",
        order=140,
        code="Derf({width}, {eps})",
        learns=(ALPHA, Learned("shift", "s", "0", single=True), GAMMA, BETA),
        oracle="x-transformers Derf",
    ),
    Norm(
        "bhyt",
        "BHyT",
        r"\gamma \odot \tanh\left(\lambda \kappa^{-1} \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}\right)"
        r",\ \lambda = 2,\ \kappa^{-1} = 0.1",
        "RMSNorm inside a tanh of fixed slope. Every norm measures its own input; the paper's "
        "cheaper estimate for the second norm of a block is not included.",
        1e-6,
        "Byun et al. 2026, arXiv:2601.09719",
        order=150,
        code="BHyT({width}, {eps})",
        learns=(GAMMA,),
        scale_invariant=True,
    ),
)
