"""The norms that exist, in the order of the switch. `normviz.nn.norms` holds the module of each key."""

from __future__ import annotations

from ..norm import NormRecord
from ..registry import Registry
from . import batch, layer, length, pointwise, rms

NONE = NormRecord(
    "none",
    "No norm",
    "x",
    "Leaves the token as it is: every norm of the scheme becomes the identity.",
    0.0,
    "the ablation",
    oracle="torch.nn.Identity",
)

NORMS: Registry[NormRecord] = Registry(
    "norm",
    (*layer.NORMS, *rms.NORMS, *length.NORMS, *pointwise.NORMS, *batch.NORMS, NONE),
)
