"""The constraints on a scheme's weights, applied once they are drawn and after each step; and QK-clip, after
each step alone.

A rule gets named tensors, one parameter each, or one stack [L, ...] of the same parameter of all
blocks, and changes them in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from ..catalog import SCHEMES

Named = Iterable[tuple[str, Tensor]]

STREAM_AXIS = {
    "tokens.weight": -1,
    "positions.weight": -1,
    "head.weight": -1,
    "qkv.weight": -1,
    "gate.weight": -1,
    "out.weight": -2,
    "up.weight": -1,
    "down.weight": -2,
}
"""The axis of the stream's channels in each matrix, by the end of the parameter's name."""
SHORTEST = 1e-12


def nothing(named: Named) -> None:
    """Leaves all weights unchanged."""


def unit_vectors(named: Named) -> None:
    """Divides every vector in the stream's space by its length (nGPT, arXiv:2410.01131)."""
    for name, matrix in named:
        axis = STREAM_AXIS.get(".".join(name.split(".")[-2:]))
        if axis is not None:
            length = torch.linalg.vector_norm(matrix, dim=axis, keepdim=True)
            matrix.div_(length.clamp_min_(SHORTEST))


RULES: dict[str, Callable[[Named], None]] = {"none": nothing, "unit_vectors": unit_vectors}


@torch.no_grad()
def clip_qk(attentions: Iterable[Any], most: float) -> None:
    """QK-clip, after a step (Kimi K2, arXiv:2507.20534; spaces.ac.cn/archives/11126): queries and keys of a
    head whose largest logit in it was S > `most` are multiplied by sqrt(most / S). So are biases, and with
    both the logits by most / S."""
    for attention in attentions:
        scale = (most / attention.largest.clamp(min=most)).sqrt()
        for p in (attention.qkv.weight, attention.qkv.bias):
            p.view(3, len(scale), -1)[:2].mul_(scale[:, None])


@torch.no_grad()
def constrain(scheme: str, named: Named) -> None:
    """Apply a scheme's constraint to its parameters, in place. Raises ValueError for an unknown scheme."""
    RULES[SCHEMES[scheme].constraint](named)
