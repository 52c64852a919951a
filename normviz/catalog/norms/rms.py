"""RMSNorm and its variants: division by a size, without centring."""

from __future__ import annotations

from ..norm import GAMMA, Learned, Norm

RANK = 16
"""Rows of the first matrix of GatedNorm's gate, whatever the width is."""
RMSNORM = "Zhang and Sennrich 2019, arXiv:1910.07467"

NORMS = (
    Norm(
        "rmsnorm",
        "RMSNorm",
        r"\gamma \odot \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
        "Divides each token's channels by their root mean square, then scales each channel; "
        "the mean stays.",
        1e-6,
        RMSNORM,
        order=50,
        code="nn.RMSNorm({width}, {eps})",
        learns=(GAMMA,),
        scale_invariant=True,
        oracle="transformers LlamaRMSNorm",
    ),
    Norm(
        "rmsnorm_1p",
        "RMSNorm 1 + w",
        r"(1 + w) \odot \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
        "RMSNorm whose scale is 1 + w with w from 0, as in Gemma: weight decay then pulls the "
        "scale towards 1, not towards 0.",
        1e-6,
        "Gemma team 2024, arXiv:2403.08295",
        order=60,
        code="RMSNorm1p({width}, {eps})",
        learns=(Learned("offset", "w", "0"),),
        scale_invariant=True,
        oracle="transformers Gemma2RMSNorm",
    ),
    Norm(
        "rmsnorm_noaffine",
        "RMSNorm, no γ",
        r"\frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
        "RMSNorm that learns nothing: every token gets the same size.",
        1e-6,
        "SimpleRMSNorm, Qin et al. 2023, arXiv:2307.14995",
        order=70,
        code="nn.RMSNorm({width}, {eps}, elementwise_affine=False)",
        scale_invariant=True,
        oracle="transformers Llama4TextL2Norm",
    ),
    Norm(
        "prmsnorm",
        "pRMSNorm",
        r"\gamma \odot \frac{x}{\sqrt{\mathrm{mean}(x_{1..k}^2)} + \epsilon},\ k = \lfloor d / 16 \rfloor",
        "RMSNorm that measures the size on the first 6.25 % of the channels alone, at least one: "
        "2 of 32, so at such widths its outputs are large wherever these happen to be small.",
        1e-8,
        RMSNORM,
        order=80,
        code="PartialRMSNorm({width}, {eps})",
        learns=(GAMMA,),
        scale_invariant=True,
    ),
    Norm(
        "crmsnorm",
        "CRMSNorm",
        r"\frac{x}{\sqrt{(\sum x_i^2 + (\sum x_i)^2) / (d + 1) + \epsilon}}",
        "Reads the d channels as a token of d + 1 channels with mean zero whose last one is left "
        "out, and divides them by its RMS: what LayerNorm does to that token, without a mean.",
        1e-5,
        "Jiang et al. 2023, arXiv:2305.14858",
        order=90,
        code="CRMSNorm({width}, {eps})",
        scale_invariant=True,
        oracle="torch.nn.LayerNorm of the completed token",
    ),
    Norm(
        "seednorm",
        "SeeDNorm",
        r"(\gamma + \tanh(x \cdot \beta)\, \alpha) \odot \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
        "RMSNorm whose scale depends on the token through one learned projection, so that its size "
        "is not lost; with β = 0 it starts as RMSNorm. The form with one head.",
        1e-6,
        "Cai et al. 2025, arXiv:2510.22777",
        order=100,
        code="SeeDNorm({width}, {eps})",
        learns=(GAMMA, Learned("alpha", r"\alpha", "1"), Learned("beta", r"\beta", "0")),
        tape=False,
    ),
    Norm(
        "preaffine",
        "PreAffine RMSNorm",
        r"\gamma \odot \frac{\lambda \odot x}{\sqrt{\mathrm{mean}\left((\lambda \odot x)^2\right) + "
        r"\epsilon}}",
        "RMSNorm of the channels times a learned scale: a channel with a large λ shrinks all others, for "
        "which the stream would need a large number in that channel.",
        1e-6,
        "Qiu et al. 2026, arXiv:2601.22966, section 3.3 (λ from 1 as in third-party code)",
        order=105,
        code="PreAffineRMSNorm({width}, {eps})",
        learns=(GAMMA, Learned("before", r"\lambda", "1")),
        scale_invariant=True,
    ),
    Norm(
        "gatednorm",
        "GatedNorm",
        r"y \odot \mathrm{sigmoid}\left(W_2\, \mathrm{SiLU}(W_1 y)\right),\ y = \gamma \odot "
        r"\frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
        "RMSNorm, then a gate a channel that the token opens and shuts through two matrices of rank 16, so "
        "that no large number in the stream is needed to shrink the other channels.",
        1e-6,
        "Qiu et al. 2026, arXiv:2601.22966, section 3.4; rank 16 and the order of the operations as three "
        "third-party implementations have them. These differ in how the matrices start; here the run's "
        "initialisation draws them",
        order=106,
        code="GatedNorm({width}, {eps})",
        learns=(
            GAMMA,
            Learned("narrow.weight", "W_1", "drawn", rank=RANK),
            Learned("widen.weight", "W_2", "drawn", rank=RANK),
        ),
        scale_invariant=True,
        tape=False,
    ),
    Norm(
        "tapernorm",
        "TaperNorm",
        r"g\, \gamma \odot \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}} + (1 - g)\, c\, "
        r"\tilde{\gamma} \odot x",
        "RMSNorm at first, a fixed scale at the end. For 5 % of the run g is 1 and the norm measures c, the "
        "factor with which a scale alone comes closest to it. Then the scale of c starts from γ, and g falls "
        "along a cosine to 0 at 40 % of the run. The norm before the output head stays RMSNorm.",
        1e-6,
        "Kanavalau et al. 2026, arXiv:2602.10408. Of the paper's text only the abstract could be read; the "
        "equations, c and the averages are those of two third-party implementations that cite its section 3. "
        "The two shares are those of the implementation in "
        "github.com/Danieldotcomcoder/domain-shift-forgetting, which says that 40 % is its own choice",
        order=107,
        code="TaperNorm({width}, {eps}, {steps})",
        learns=(GAMMA, Learned("tapered", r"\tilde{\gamma}", "1")),
        last="rmsnorm",
        tape=False,
    ),
)
