"""Norms by hand: a table small enough to check with pencil and paper, and every value in between.

An `Example` is what somebody typed; `work` gives what LayerNorm, RMSNorm and BatchNorm make of it,
`said` says so in sentences, `code` in PyTorch and Keras, `links` in an address. All without torch.
"""

from . import code, conventions, links, said, steps
from .example import EXPERIMENTS, FEATURES, RANGES, ROWS, Example, HandError
from .norms import Worked
from .numbers import brief, matrix, number, shown, written
from .presets import PRESETS
from .work import KEYS, Work, work

__all__ = [
    "EXPERIMENTS",
    "FEATURES",
    "KEYS",
    "PRESETS",
    "RANGES",
    "ROWS",
    "Example",
    "HandError",
    "Work",
    "Worked",
    "brief",
    "code",
    "conventions",
    "links",
    "matrix",
    "number",
    "said",
    "shown",
    "steps",
    "work",
    "written",
]
