"""A scheme's record as formula, gradient path, diagram and code. Torch-free.

All of it is derived from the record that the model is built from, so it can't drift from the model.
"""

from .block import block
from .code import classes, code, our_name, sizes
from .diagram import diagram, glyph
from .formula import constants, formula, gradient_path, plain
from .parameters import Added, added

__all__ = [
    "Added",
    "added",
    "block",
    "classes",
    "code",
    "constants",
    "diagram",
    "formula",
    "glyph",
    "gradient_path",
    "our_name",
    "plain",
    "sizes",
]
