"""Instruments on named sites of the model: what `catalog.PROBES` defines, computed.

A probe is inert: it reads what the step computes anyway and changes no number of it. It works on
all layers at once (a stack of L tensors and one kernel, instead of L kernels) because in a run
like the preset `hero` a kernel has little to compute.
"""

from .instruments import (
    INSTRUMENTS,
    NormScales,
    StepTensors,
    add_update_ratio,
    layers_of,
    probe_tensor,
    site_recorder,
)
from .recorder import Recorder, StepBuffers
from .rows import AddingRecorder, probe_rows

__all__ = [
    "INSTRUMENTS",
    "AddingRecorder",
    "NormScales",
    "Recorder",
    "StepBuffers",
    "StepTensors",
    "add_update_ratio",
    "layers_of",
    "probe_rows",
    "probe_tensor",
    "site_recorder",
]
