"""LayerNorm and its variants: mean and standard deviation of each token's own channels."""

from __future__ import annotations

from ..norm import BETA, GAMMA, Learned, Norm

LAYERNORM = "Ba et al. 2016, arXiv:1607.06450"

NORMS = (
    Norm(
        "layernorm",
        "LayerNorm",
        r"\gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta",
        "Subtracts the mean of each token's channels, divides by their standard deviation, "
        "then scales and shifts each channel.",
        1e-5,
        LAYERNORM,
        order=10,
        code="nn.LayerNorm({width}, {eps})",
        learns=(GAMMA, BETA),
        shift_invariant=True,
        scale_invariant=True,
        oracle="torch.nn.LayerNorm",
    ),
    Norm(
        "layernorm_nobias",
        "LN without β",
        r"\gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}",
        "LayerNorm that scales each channel but does not shift it, as in Cohere's Command models.",
        1e-5,
        f"{LAYERNORM}; without shift as in Chowdhery et al. 2022, arXiv:2204.02311",
        order=20,
        code="nn.LayerNorm({width}, {eps}, bias=False)",
        learns=(GAMMA,),
        shift_invariant=True,
        scale_invariant=True,
        oracle="transformers CohereLayerNorm",
    ),
    Norm(
        "layernorm_nonparam",
        "LN without γ, β",
        r"\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}",
        "LayerNorm that learns nothing, as in the first OLMo.",
        1e-5,
        "Groeneveld et al. 2024, arXiv:2402.00838",
        order=30,
        code="nn.LayerNorm({width}, {eps}, elementwise_affine=False)",
        shift_invariant=True,
        scale_invariant=True,
        oracle="transformers OlmoLayerNorm",
    ),
    Norm(
        "layernorm_1p",
        "LayerNorm 1 + w",
        r"(1 + w) \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta",
        "LayerNorm whose scale is 1 + w with w from 0, as in Nemotron: weight decay then pulls the "
        "scale towards 1, not towards 0.",
        1e-5,
        "NVIDIA NeMo; Hugging Face transformers, models/nemotron (NemotronLayerNorm1P)",
        order=35,
        code="LayerNorm1p({width}, {eps})",
        learns=(Learned("offset", "w", "0"), BETA),
        shift_invariant=True,
        scale_invariant=True,
        oracle="transformers NemotronLayerNorm1P",
    ),
    Norm(
        "groupnorm",
        "GroupNorm",
        r"\gamma \odot \frac{x - \mu_g}{\sqrt{\sigma_g^2 + \epsilon}} + \beta",
        "LayerNorm inside each of G groups of a token's channels; G is the largest of 4, 2 and 1 "
        "that divides the width into groups of at least two channels.",
        1e-5,
        "Wu and He 2018, arXiv:1803.08494, here over the channels of one token",
        order=40,
        code="GroupNorm({width}, {eps})",
        learns=(GAMMA, BETA),
        shift_invariant=True,
        scale_invariant=True,
        oracle="torch.nn.GroupNorm",
    ),
)
