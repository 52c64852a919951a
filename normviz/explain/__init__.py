"""A scheme's record, said in other ways: formula, gradient path, diagram, code. Torch-free.

Everything here is derived from the record that the model is built from, so it can't drift from it.
"""

from .code import code, our_name
from .diagram import diagram
from .formula import constants, formula, gradient_path
from .parameters import Added, added
from .plain import plain

__all__ = [
    "Added",
    "added",
    "code",
    "constants",
    "diagram",
    "formula",
    "gradient_path",
    "our_name",
    "plain",
]
