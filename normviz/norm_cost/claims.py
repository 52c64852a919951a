"""What is said of RMSNorm's speed, drawn as lines beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """RMSNorm takes `low` to `high` percent less time than LayerNorm, says `source`."""

    low: float
    high: float
    source: str

    @property
    def ratio(self) -> float:
        """Time over LayerNorm's that the claim comes to at least."""
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
"""All three are said of models on GPUs, or of nothing in particular."""
