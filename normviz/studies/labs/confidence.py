"""How large the logits become in training, and whether larger than the loss asks for.

Without a final norm the cross-entropy falls where the last hidden state grows (Kanavalau et al. 2026,
arXiv:2602.10408). A factor of all logits that lowers the held-out loss says how far they overshot.
"""

from __future__ import annotations

import math

import torch

from ...config import RunConfig
from .model import ROWS, begun, held_out, output, trained

FACTORS = tuple(2 ** (k / 32) for k in range(-96, 65))
"""Factors of the logits that are tried, 1/8 to 4."""


@torch.no_grad()
def measure(config: RunConfig) -> dict[str, float]:
    """`start` and `end`: standard deviation of the logits over positions and symbols; `hidden_start` and
    `hidden_end`: RMS of what the head reads; `factor`: of all logits, the one with the lowest held-out
    loss; `loss` on the held-out batch of 128 sequences, in evaluation mode.

    Raises ValueError for a task of which no part is held out.
    """
    tokens, targets = held_out(config.replace(batch=ROWS))
    first = begun(config)[0].eval()
    readings = {
        "start": float(first(tokens).std()),
        "hidden_start": float(output(first, tokens).square().mean().sqrt()),
    }
    with torch.enable_grad():
        model = trained(config)[0].eval()
    logits, wanted = model(tokens).flatten(0, 1).double(), targets.flatten()

    def loss(factor: float) -> float:
        return float(torch.nn.functional.cross_entropy(factor * logits, wanted))

    losses = {factor: loss(factor) for factor in FACTORS}
    best = (
        min(losses, key=lambda factor: losses[factor]) if math.isfinite(losses[1.0]) else math.nan
    )
    return {
        **readings, "end": float(logits.std()),
        "hidden_end": float(output(model, tokens).square().mean().sqrt()),
        "factor": best, "loss": losses[1.0],
    }  # fmt: skip
