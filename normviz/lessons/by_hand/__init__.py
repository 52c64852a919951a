"""Norms by hand: a table small enough to check on paper, with every intermediate value.

An `Example` holds the visitor's settings. `work` computes LayerNorm, RMSNorm and BatchNorm on it,
`sentences` describes the result in sentences, `code` writes it in PyTorch and Keras, and `links` encodes
it as a link. Nothing here imports torch.
"""

from . import code, formulas, links, sentences, steps
from .example import (
    EXPERIMENTS,
    FEATURES,
    PRESETS,
    RANGES,
    ROWS,
    Example,
    HandError,
    brief,
    matrix,
    number,
    shown,
    written,
)
from .formulas import NormSteps
from .steps import KEYS, Work, work

__all__ = [
    "EXPERIMENTS",
    "FEATURES",
    "KEYS",
    "PRESETS",
    "RANGES",
    "ROWS",
    "Example",
    "HandError",
    "NormSteps",
    "Work",
    "brief",
    "code",
    "formulas",
    "links",
    "matrix",
    "number",
    "sentences",
    "shown",
    "steps",
    "work",
    "written",
]
