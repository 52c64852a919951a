"""What exists, as torch-free records: schemes, norms, inits, tasks, probes and the smaller choices; and
the words of the trade."""

from .cells import CELLS, Cell
from .choices import (
    ACTIVATIONS,
    ATTN_GATES,
    DECAYS,
    DEVICES,
    MASKS,
    OPTIMIZERS,
    PARAMETRISATIONS,
    PATCH_NORMS,
    POSITIONS,
    QK_NORMS,
    ROUNDINGS,
    SCHEDULES,
    SINKS,
    TIED,
    V_NORMS,
)
from .constraints import CONSTRAINTS
from .families import FAMILIES
from .glossary import WORDS
from .inits import INITS
from .norms import NORMS
from .probes import PROBES
from .registry import Registry
from .scheme import Scheme
from .schemes import SCHEMES
from .streams import STREAMS
from .tasks import TASKS

PLACEMENTS: Registry[Scheme | Cell] = Registry.joined("scheme", SCHEMES, CELLS)
"""All placements: of residual streams, and of recurrent nets."""

__all__ = [
    "ACTIVATIONS",
    "ATTN_GATES",
    "CELLS",
    "CONSTRAINTS",
    "DECAYS",
    "DEVICES",
    "FAMILIES",
    "INITS",
    "MASKS",
    "NORMS",
    "OPTIMIZERS",
    "PARAMETRISATIONS",
    "PATCH_NORMS",
    "PLACEMENTS",
    "POSITIONS",
    "PROBES",
    "QK_NORMS",
    "ROUNDINGS",
    "SCHEDULES",
    "SCHEMES",
    "SINKS",
    "STREAMS",
    "TASKS",
    "TIED",
    "V_NORMS",
    "WORDS",
]
