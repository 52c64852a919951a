"""How many operations of a training step are those of its norms, counted and not timed."""

from __future__ import annotations

from torch.utils.flop_counter import FlopCounterMode

from ...config import RunConfig
from ..norm_cost.measure import of_formula
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
    one = of_formula(config.norm, tokens, width, backward=True)
    model, task = begun(config)
    with FlopCounterMode(display=False) as counter:
        model.loss(*batch(task, 0)).backward()
    all_norms = one.operations * norms.measure(config)["norms"]
    return {
        "norm": one.operations / (tokens * width), "bytes": one.bytes / (tokens * width),
        "share": 100 * all_norms / (counter.get_total_flops() + all_norms),
    }  # fmt: skip
