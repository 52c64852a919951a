"""Where PyTorch and Keras use the same words with different meanings."""

from __future__ import annotations

from .example import Example
from .numbers import brief

TORCH_EPS = {"layernorm": 1e-5, "rmsnorm": None, "batchnorm": 1e-5}
"""Defaults of torch.nn; None is the machine epsilon of the tensor's dtype."""
KERAS_EPS = {"layernorm": 1e-3, "rmsnorm": 1e-6, "batchnorm": 1e-3}
"""Defaults of keras.layers 3."""
TORCH_MOMENTUM, KERAS_MOMENTUM = 0.1, 0.99


def keras_momentum(momentum: float) -> float:
    """Keras' momentum is the share of the old value, PyTorch's that of the new: 0.1 becomes 0.9."""
    return round(1 - momentum, 15)


def table(example: Example) -> tuple[tuple[str, str, str], ...]:
    """Rows of (property, in PyTorch, in Keras)."""
    of_torch = ", ".join("of the dtype" if v is None else brief(v) for v in TORCH_EPS.values())
    of_keras = ", ".join(brief(v) for v in KERAS_EPS.values())
    return (
        ("Default ε: LayerNorm, RMSNorm, BatchNorm", of_torch, of_keras),
        (
            "Momentum is the share of",
            f"the new batch: {brief(example.momentum)} (default {brief(TORCH_MOMENTUM)})",
            f"the old value: {brief(keras_momentum(example.momentum))} "
            f"(default {brief(KERAS_MOMENTUM)})",
        ),
        ("Running variance takes in the", "unbiased variance, / (n − 1)", "biased variance, / n"),
        ("Training on one row", "raises ValueError", "gives β"),
        ("Features are", "of BatchNorm1d: axis 1", "the last axis, axis=-1"),
        ("Padding is left out by", "indexing: norm(x[real])", "a mask: norm(x, mask=real)"),
    )
