"""Norms of a token's Euclidean length."""

from __future__ import annotations

from ..norm import Learned, Norm

NORMS = (
    Norm(
        "scalenorm",
        "ScaleNorm",
        r"g\, \frac{x}{\max(\lVert x \rVert_2, \epsilon)}",
        "Gives every token the same length, one learned number that starts at the square root of "
        "the width.",
        1e-5,
        "Nguyen and Salazar 2019, arXiv:1910.05895",
        order=110,
        code="ScaleNorm({width}, {eps})",
        learns=(Learned("scale", "g", "sqrt(d)", single=True),),
        scale_invariant=True,
        oracle="x-transformers ScaleNorm",
    ),
    Norm(
        "l2",
        "L2 norm",
        r"\frac{x}{\max(\lVert x \rVert_2, \epsilon)}",
        "Gives every token the length 1 and learns nothing: nGPT's norm, without nGPT's rules for "
        "the weights.",
        1e-12,
        "Loshchilov et al. 2024, arXiv:2410.01131; the guard against zero is ours",
        order=120,
        code="UnitLength({width}, {eps})",
        scale_invariant=True,
        oracle="x-transformers l2norm",
    ),
)
