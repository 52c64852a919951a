"""The constraints on a scheme's weights, as torch-free records; `normviz.model.constraint` applies them."""

from __future__ import annotations

from .choices import Choice
from .registry import Registry

CONSTRAINTS: Registry[Choice] = Registry(
    "constraint",
    (
        Choice("none", "None", "The optimizer alone changes the weights."),
        Choice(
            "unit_vectors",
            "Unit vectors",
            "Before the first step and after each, every vector of a matrix that lies in the "
            "stream's space is divided by its length: the rows of both embeddings, of the output "
            "head, of queries, keys, values and a gate and of the FFN's first matrix, the columns of "
            "the two matrices that write to the stream. Biases and gains stay as they are.",
        ),
    ),
)
