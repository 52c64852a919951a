"""nGPT's twin, as its paper writes it: alpha, s_qk, s_u and s_z are stored at alpha_scale etc. and
multiplied by alpha_init / alpha_scale where they are used. Its norm is its own, whatever is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from norm_twins import length
from torch import Tensor
from twin_parts import Params

ROWS = ("tokens.weight", "positions.weight", "head.weight", "qkv.weight", "up.weight")
COLUMNS = ("out.weight", "down.weight")


def unit(x: Tensor) -> Tensor:
    return x / length(x)


def between(
    x: Tensor, F: Callable[[Tensor], Tensor], S: Any
) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """(skip, branch, what is done to their sum)."""
    alpha_init, alpha_scale = 0.05, 1 / math.sqrt(x.shape[-1])
    alpha = (S.learned("branch_gain") * (alpha_init / alpha_scale)).abs()
    return (1 - alpha) * x, alpha * unit(F(x)), unit


def compared(p: Params, name: str, q: Tensor) -> Tensor:
    """Queries or keys [B, H, T, h]; the logits are q k / sqrt(h), the paper's q k sqrt(h)."""
    _, heads, _, head = q.shape
    s_qk = p[f"{name}.qk_gain.weight"] * math.sqrt(heads * head)
    return math.sqrt(head) * s_qk.view(heads, 1, head) * unit(q)


def hidden(p: Params, name: str, u: Tensor, width: int) -> Tensor:
    return u * p[f"{name}.hidden_gain.weight"] * math.sqrt(width)


def logits(p: Params, z: Tensor, width: int) -> Tensor:
    return p["logit_gain.weight"] * math.sqrt(width) * z


def after_step(scheme: str, p: Params) -> dict[str, Tensor]:
    """The parameters as a scheme leaves them after a step of the optimizer."""
    if scheme != "ngpt":
        return dict(p)
    found = {name: unit(x) if name.endswith(ROWS) else x for name, x in p.items()}
    return {name: unit(x.T).T if name.endswith(COLUMNS) else x for name, x in found.items()}
