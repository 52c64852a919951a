"""Without norms: the branches start at zero or small instead."""

from __future__ import annotations

from ..scheme import Constant, Gain, Matrix, Place, Scheme, Slots


def tfixup_weight_gain(place: Place, matrix: Matrix) -> float:
    """Weight gain 0.67 L^(-1/4), and 1 for queries and keys; T-Fixup, Huang et al. 2020."""
    return 1.0 if matrix == "query_key" else 0.67 * place.depth**-0.25


def tfixup_embedding_std(width: int, depth: int) -> float:
    """Standard deviation d^(-1/2) (9L)^(-1/4) of the token embedding; T-Fixup, Huang et al. 2020."""
    return width**-0.5 * (9 * depth) ** -0.25


SCHEMES = (
    Scheme(
        key="rezero",
        label="ReZero",
        order=310,
        family="No norm",
        sentence="No norm; each branch is multiplied by a learned number that starts at 0, one a "
        "block, so that the model starts as the identity.",
        trouble="Nothing but these numbers has a gradient in the first step.",
        source="Bachlechner et al. 2020, arXiv:2003.04887",
        slots=lambda _: Slots(branch_gain=Gain(0.0, "block")),
        final_norm=False,
        constants=(Constant("branch_gain", "r", r"\text{learned, starts at 0}"),),
    ),
    Scheme(
        key="skipinit",
        label="SkipInit",
        order=320,
        family="No norm",
        sentence="No norm; each branch is multiplied by a learned number of its own that starts "
        "at 0.",
        trouble="Nothing but these numbers has a gradient in the first step.",
        source="De and Smith 2020, arXiv:2002.10444",
        slots=lambda _: Slots(branch_gain=Gain(0.0, "sublayer")),
        final_norm=False,
        constants=(Constant("branch_gain", r"\alpha", r"\text{learned, starts at 0}"),),
    ),
    Scheme(
        key="tfixup",
        label="T-Fixup",
        order=330,
        family="No norm",
        sentence="No norm; value, output and FFN matrices start multiplied by 0.67 L^(-1/4), the "
        "embedding normal with standard deviation 1/sqrt(d) times (9L)^(-1/4).",
        trouble="Meant for Xavier initialisation. The encoder's constants: the paper has none for "
        "a stack of decoder blocks without cross-attention.",
        source="Huang et al. 2020 (ICML), layer6ai/T-Fixup",
        slots=lambda _: Slots(),
        final_norm=False,
        weight_gain=tfixup_weight_gain,
        embedding_std=tfixup_embedding_std,
        constants=(Constant("weight_gain", r"\beta", "0.67\\,L^{-1/4}"),),
    ),
    Scheme(
        key="sigma_reparam",
        label="sigmaReparam",
        order=335,
        family="No norm",
        sentence="No norm; each matrix of a branch is divided by its largest singular value and multiplied "
        "by a learned number that starts at 1.",
        trouble="The singular value is estimated by one power iteration a step. Queries, keys and values are "
        "one matrix; embeddings and head are free. The authors' code for images starts gamma at the drawn "
        "matrix's singular value, their code for speech at 1.",
        source="Zhai et al. 2023, arXiv:2303.06296; apple/ml-sigma-reparam",
        slots=lambda _: Slots(spectral=True),
        final_norm=False,
    ),
)
