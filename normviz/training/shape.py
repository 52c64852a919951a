"""Which runs have one shape, so that a GPU can train them together. Torch-free."""

from __future__ import annotations

from ..catalog import SCHEMES
from ..catalog.scheme import Place
from ..config import RunConfig

FREE = {
    "init", "init_seed", "data_seed", "lr", "lr_edits", "clip", "warmup", "schedule", "weight_gain",
}  # fmt: skip
"""Settings that runs of one stack may have differently: they enter as numbers, before or after the pass."""


def shape_of(config: RunConfig) -> str | None:
    """Runs of the same shape can be a stack; None for a run that can't be in one."""
    c = config.placed()
    if c.family != "decoder" or c.optimizer != "adamw" or not c.moves_alike:
        return None
    scheme = SCHEMES[c.scheme]
    slots = scheme.slots(Place(1, 1, "attention"))
    is_bound = scheme.constraint != "none" or slots.spectral or slots.branch_gain.ramp
    if is_bound or c.loops > 1 or c.qk_clip:
        return None
    if c.dropout or c.zloss or c.norm in ("batchnorm", "powernorm", "tapernorm"):
        return None
    return str([getattr(c, name) for name in RunConfig.model_fields if name not in FREE])
