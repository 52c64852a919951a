"""Instruments on named sites of the model: what `catalog.PROBES` defines, computed.

A probe is inert: it reads what the step computes anyway and changes no number of it. It works on
all layers at once (a stack of L tensors and one kernel, instead of L kernels) because at hero size
a training step is made of kernel launches.
"""

from .instruments import (
    INSTRUMENTS,
    NormScales,
    StepTensors,
    add_norm_drift,
    add_update_ratio,
    probe_tensor,
    site_recorder,
)
from .recorder import Recorder, Stacks

__all__ = [
    "INSTRUMENTS",
    "NormScales",
    "Recorder",
    "Stacks",
    "StepTensors",
    "add_norm_drift",
    "add_update_ratio",
    "probe_tensor",
    "site_recorder",
]
