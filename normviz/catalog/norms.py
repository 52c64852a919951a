"""The norms that exist, as torch-free records. `normviz.nn.norms` holds the module of each key."""

from __future__ import annotations

from dataclasses import dataclass

from .registry import Registry


@dataclass(frozen=True)
class NormRecord:
    """A norm: its formula (LaTeX, of x with d channels), what it learns, and where it comes from."""

    key: str
    label: str
    formula: str
    sentence: str
    eps: float
    source: str


NORMS: Registry[NormRecord] = Registry(
    "norm",
    (
        NormRecord(
            "layernorm",
            "LayerNorm",
            r"\gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta",
            "Subtracts the mean of each token's channels, divides by their standard deviation, "
            "then scales and shifts each channel.",
            1e-5,
            "Ba et al. 2016, arXiv:1607.06450",
        ),
        NormRecord(
            "rmsnorm",
            "RMSNorm",
            r"\gamma \odot \frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
            "Divides each token's channels by their root mean square, then scales each channel; "
            "the mean stays.",
            1e-6,
            "Zhang and Sennrich 2019, arXiv:1910.07467",
        ),
        NormRecord(
            "none",
            "No norm",
            "x",
            "Leaves the token as it is: every norm of the scheme becomes the identity.",
            0.0,
            "the ablation",
        ),
    ),
)
