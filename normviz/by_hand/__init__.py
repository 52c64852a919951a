"""Norms by hand: a table small enough to check on paper, with every intermediate value.

An `Example` holds the visitor's settings. `work` computes LayerNorm, RMSNorm and BatchNorm on it,
`said` describes the result in sentences, `code` writes it in PyTorch and Keras, and `links` encodes
it as a link. Nothing here imports torch.
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
