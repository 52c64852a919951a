"""PyTorch's work in a call: kernels, bytes and operations, counted by a dispatch mode.

kernels   operations that start a kernel; views and bare allocations start none
bytes     read and written by each kernel, assuming no cache
operations  elementary operations of the written-out formula. Each counts as many as its largest
          tensor has numbers: x * y one per number, a sum one per number, also a tanh
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .modules import EPS
from .result import Counts

NO_KERNEL = {
    "_reshape_alias", "_unsafe_view", "alias", "detach", "empty", "empty_like", "empty_strided",
    "lift_fresh", "new_empty", "new_empty_strided",
}  # fmt: skip
"""In addition to views, which an operation's schema marks."""


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.kernels = self.bytes = self.operations = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # the signature is PyTorch's
        out = func(*args, **(kwargs or {}))
        if _starts_a_kernel(func):
            tensors = [x for x in tree_leaves((args, kwargs, out)) if isinstance(x, Tensor)]
            self.kernels += 1
            self.bytes += sum(x.numel() * x.element_size() for x in tensors)
            self.operations += max((x.numel() for x in tensors), default=0)
        return out


def _starts_a_kernel(func: Any) -> bool:
    infos = [returned.alias_info for returned in func._schema.returns]
    is_view = any(info is not None and not info.is_write for info in infos)
    return not is_view and func._schema.name.removeprefix("aten::") not in NO_KERNEL


def count(call: Callable[[], object]) -> Counts:
    """Count the kernels, bytes and operations of one call."""
    with _Counter() as counter:
        call()
    return Counts(counter.kernels, counter.bytes, counter.operations)


def layernorm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """LayerNorm written out; arXiv:1607.06450."""
    centred = x - x.mean(-1, keepdim=True)
    r = torch.rsqrt(centred.square().mean(-1, keepdim=True) + EPS)
    return centred * r * weight + bias


def rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm written out; arXiv:1910.07467."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * weight


def dyt(x: Tensor, alpha: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """DyT written out; arXiv:2503.10622."""
    return torch.tanh(alpha * x) * weight + bias


FORMULAS: dict[str, Callable[..., Tensor]] = {
    "layernorm": layernorm, "again": layernorm, "rmsnorm": rmsnorm, "rmsnorm_hand": rmsnorm,
    "rmsnorm_fused": rmsnorm, "dyt": dyt, "none": lambda x: x,
}  # fmt: skip
SHAPES = {layernorm: (-1, -1), rmsnorm: (-1,), dyt: (1, -1, -1)}
"""Shapes of each formula's parameters; -1 is the width."""


def arithmetic(variant: str, tokens: int, width: int, backward: bool) -> int:
    """Operations of a variant's formula on [tokens, width], forward or forward and backward."""
    formula = FORMULAS[variant]
    learned = [torch.ones(n if n > 0 else width) for n in SHAPES.get(formula, ())]
    inputs = [each.requires_grad_() for each in (torch.randn(tokens, width), *learned)]
    grad = torch.ones(tokens, width)

    def call() -> None:
        y = formula(*inputs)
        if backward and learned:  # without parameters there is no backward pass
            torch.autograd.grad(y, inputs, grad)

    return count(call).operations
