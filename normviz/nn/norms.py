"""The module of each norm key, over the last axis."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from ..catalog import NORMS

BUILDERS: dict[str, Callable[[int], nn.Module]] = {
    "layernorm": lambda width: nn.LayerNorm(width, eps=NORMS["layernorm"].eps),
    "rmsnorm": lambda width: nn.RMSNorm(width, eps=NORMS["rmsnorm"].eps),
    "none": lambda _: nn.Identity(),
}


def make_norm(key: str, width: int) -> nn.Module:
    """A fresh norm over `width` channels, with its learned scale at 1 and shift at 0."""
    return BUILDERS[key](width)
