"""How alike the streams after neighbouring blocks of a trained model are, and how much gradient reaches its
first block."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch.nn.functional import cosine_similarity

from ...config import RunConfig
from ...training.probes import Recorder
from .model import batch, gradient_norm, trained


def measure(config: RunConfig) -> dict[str, float]:
    """Of the model at the end of its steps, on a batch after the last one: the cosine of a position's stream
    after a block with that after the block before, in the mean over positions and over the `early` and the
    `deep` half of the blocks; `gradient`, the L2 norm of the gradient of the first block's parameters over
    that of the last one's. Needs two blocks or more."""
    model, task = trained(config)
    tap = Recorder(("stream",))
    model.loss(*batch(task, config.steps), tap).backward()
    with torch.no_grad():
        after = pairwise(tap.seen["stream"][1:])
        cosines = [float(cosine_similarity(a, b, dim=-1).mean()) for a, b in after]
    half = (len(cosines) + 1) // 2
    first, last = (gradient_norm(model.blocks[b]) for b in (0, -1))
    return {
        "early": sum(cosines[:half]) / half,
        "deep": sum(cosines[-half:]) / half,
        "gradient": first / last,
    }
