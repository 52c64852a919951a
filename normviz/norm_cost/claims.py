"""Published claims about RMSNorm's speed, drawn as lines beside the measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """`source` claims that RMSNorm takes `low` to `high` percent less time than LayerNorm."""

    low: float
    high: float
    source: str

    @property
    def ratio(self) -> float:
        """Time over LayerNorm's that the claim implies at least."""
        return (100 - self.low) / 100

    @property
    def label(self) -> str:
        return f"{self.low:g} to {self.high:g} % less"


CLAIMS = (
    Claim(
        7,
        10,
        "arXiv:1910.07467 found 7 to 64 % over its models, of which 7 is the least; arXiv:2305.14858 "
        "1 to 10 % for whole Pre-LN transformers",
    ),
    Claim(10, 15, "READMEs and tutorials, without a measurement"),
    Claim(15, 20, "READMEs and tutorials, without a measurement"),
)
"""All three are about models on GPUs, or do not say."""
