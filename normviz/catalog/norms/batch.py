"""Norms over the batch: the output at one position depends on all others."""

from __future__ import annotations

from ..norm import BETA, GAMMA, NormRecord

LEAK = (
    "mixes positions and sequences: in a language model each position sees the future and the "
    "other sequences of its batch, and training and evaluation differ."
)

NORMS = (
    NormRecord(
        "batchnorm",
        "BatchNorm",
        r"\gamma \odot \frac{x - \mu_{B,T}}{\sqrt{\sigma_{B,T}^2 + \epsilon}} + \beta",
        "Centres and scales each channel over all positions of all sequences of the batch.",
        1e-5,
        "Ioffe and Szegedy 2015, arXiv:1502.03167",
        order=160,
        code="BatchNorm({width}, {eps})",
        learns=(GAMMA, BETA),
        shift_invariant=True,
        scale_invariant=True,
        oracle="torch.nn.BatchNorm1d",
        warning=f"BatchNorm {LEAK}",
        tape=False,
    ),
    NormRecord(
        "powernorm",
        "PowerNorm",
        r"\gamma \odot \frac{\hat{x}}{\sqrt{\psi^2 + \epsilon}} + \beta,\ "
        r"\hat{x} = \mathrm{RMSNorm}_g(x)",
        "Scales each channel by its running quadratic mean over the batches so far, with a running "
        "average in the backward pass too, after RMSNorm in groups (those of GroupNorm). The first "
        "20 steps, a tenth of a usual run here, use the batch's own quadratic mean.",
        1e-5,
        "Shen et al. 2020, arXiv:2003.07845, as its public code computes it",
        order=170,
        code="PowerNorm({width}, {eps})",
        learns=(GAMMA, BETA),
        scale_invariant=True,
        warning=f"PowerNorm {LEAK}",
        tape=False,
    ),
)
