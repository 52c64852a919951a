"""How many operations of a training step are those of its norms, counted and not timed."""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from ...config import RunConfig
from ..norm_cost.measure import FORMULAS, SHAPES, arithmetic, count
from . import norms
from .model import batch, begun


def measure(config: RunConfig) -> dict[str, float]:
    """Forward and backward: `norm` and `bytes`, operations and bytes (read and written, each operation by
    itself) of one number of the config's norm as its formula is written out; `share`, percent of a step's
    operations that are its norms'. A multiplication and an addition count as two, and of a step the matrix
    products and the norms are counted.

    Raises KeyError for a norm whose formula `norm_cost` has not.
    """
    tokens, width = config.batch * config.seq_len, config.width
    one = arithmetic(config.norm, tokens, width, backward=True)
    model, task = begun(config)
    with FlopCounterMode(display=False) as counter:
        model.loss(*batch(task, 0)).backward()
    all_norms = one * norms.measure(config)["norms"]
    return {
        "norm": one / (tokens * width), "bytes": moved(config.norm, tokens, width) / (tokens * width),
        "share": 100 * all_norms / (counter.get_total_flops() + all_norms),
    }  # fmt: skip


def moved(norm: str, tokens: int, width: int) -> int:
    """Bytes that the operations of a norm's formula read and write on [tokens, width], both ways."""
    formula = FORMULAS[norm]
    learned = [torch.ones(width if n < 0 else n) for n in SHAPES[formula]]
    inputs = [each.requires_grad_() for each in (torch.randn(tokens, width), *learned)]
    grad = torch.ones(tokens, width)
    return count(lambda: torch.autograd.grad(formula(*inputs), inputs, grad)).bytes
