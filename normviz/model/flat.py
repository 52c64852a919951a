"""One buffer for all parameters and one for all gradients, with the model's tensors as views.

The optimizer, clipping and the norms of every block are then a few kernels instead of hundreds
(measured: worth it at hero size). Blocks come first, padded to one length, so that `blocks` is a
matrix [L, P] with a row a block; padding stays zero. Inside a row the matrices that every scheme
has come first, so a slice of columns means the same in all schemes.

`profile` sets the learned skip gains of Admin from the variances of one forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ..catalog import SCHEMES
from ..config import RunConfig
from .data import Task
from .transformer import Transformer
from .wire import Wire

SHARED = (
    "attention.branch.qkv.weight",
    "attention.branch.qkv.bias",
    "attention.branch.out.weight",
    "attention.branch.out.bias",
    "ffn.branch.up.weight",
    "ffn.branch.up.bias",
    "ffn.branch.down.weight",
    "ffn.branch.down.bias",
    *(f"first.branch.{map_}.{kind}" for map_ in ("up", "down") for kind in ("weight", "bias")),
    *(f"messages.branch.{map_}.{kind}" for map_ in ("value", "out") for kind in ("weight", "bias")),
    *(f"attention.branch.gate.{kind}" for kind in ("weight", "bias")),
)
"""The matrices of a family's branches, in the order of a row."""


def _ordered(block: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """A block's parameters, the shared ones first."""
    named = dict(block.named_parameters())
    shared = [name for name in SHARED if name in named]
    return [(name, named.pop(name)) for name in shared] + list(named.items())


class Flat:
    """Packs a model. `values` and `grads` are [N]; `blocks` and `block_grads` view them as [L, P].

    `optimised` is the one parameter an optimizer needs; its gradient is `grads`.
    """

    def __init__(self, model: Transformer, device: torch.device) -> None:
        self.loops = model.loops
        rows = [_ordered(block) for block in model.blocks]
        row = max(sum(p.numel() for _, p in named) for named in rows)
        inside = {id(p) for named in rows for _, p in named}
        rest = [p for p in model.parameters() if id(p) not in inside]
        size = len(rows) * row + sum(p.numel() for p in rest)
        self.values = torch.zeros(size, device=device)
        self.grads = torch.zeros(size, device=device)
        for b, named in enumerate(rows):
            self._view(b * row, [p for _, p in named])
        self._view(len(rows) * row, rest)
        self.blocks = self.values[: len(rows) * row].view(len(rows), row)
        self.block_grads = self.grads[: len(rows) * row].view(len(rows), row)
        self.columns = dict(_columns(rows[0]))
        self.shared = tuple(name for name in SHARED if name in self.columns)
        self.shapes = {name: p.shape for name, p in rows[0]}
        self.outside = [(n, p.data) for n, p in model.named_parameters() if id(p) not in inside]
        self.optimised = nn.Parameter(self.values)
        self.optimised.grad = self.grads

    def _passes(self, blocks: Tensor) -> Tensor:
        """Rows of blocks [L, P] as passes that share what is learned, [loops, L / loops, P]."""
        return blocks.unflatten(0, (self.loops, -1))

    def grad_norm(self) -> Tensor:
        """The L2 norm of the gradient of what is learned, a scalar: of passes, that of their sum."""
        if self.loops == 1:
            return torch.linalg.vector_norm(self.grads)
        outside = self.grads[self.blocks.numel() :]
        summed = self._passes(self.block_grads).sum(0)
        return torch.linalg.vector_norm(torch.cat((summed.flatten(), outside)))

    def add_passes(self) -> None:
        """Give each pass the gradients of all together, so that all move alike; probes read before."""
        if self.loops > 1:
            grads = self._passes(self.block_grads)
            grads.copy_(grads.sum(0).expand_as(grads))

    def share(self) -> None:
        """Give each pass the values of the first, which differ by rounding at most."""
        if self.loops > 1:
            passes = self._passes(self.blocks)
            passes[1:] = passes[0]

    def named(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values: each shared parameter of all blocks as one [L, ...], and each parameter
        outside of the blocks."""
        for name in self.shared:
            yield name, self.blocks[:, self.columns[name]].unflatten(1, self.shapes[name])
        yield from self.outside

    def _view(self, offset: int, parameters: list[nn.Parameter]) -> None:
        """Copy parameters into the buffer and make them, and their gradients, views of it."""
        for p in parameters:
            n, shape = p.numel(), p.shape
            self.values[offset : offset + n].copy_(p.detach().flatten())
            p.data = self.values[offset : offset + n].view(shape)
            p.grad = self.grads[offset : offset + n].view(shape)
            offset += n


def _columns(named: list[tuple[str, nn.Parameter]]) -> Iterator[tuple[str, slice]]:
    """Where each shared parameter of a block lies in its row."""
    offset = 0
    for name, p in named:
        yield name, slice(offset, offset + p.numel())
        offset += p.numel()


# Admin's profiling pass: learned skip gains that start from the variances of one forward pass.


class Profiler:
    """A tap that sets omega of each sublayer when the forward pass reaches it.

    omega_1 = 1 and omega_{i+1} = sqrt(Var(omega_i x) + Var(F_i)), as the authors' code does
    (Liu et al. 2020, arXiv:2004.08249).
    """

    def __init__(self, model: Transformer) -> None:
        blocks: Any = model.blocks
        self.wires: list[Wire] = [w for block in blocks for _, w in block.sublayers()]
        self.omega = 1.0
        self.variance = 0.0

    def __call__(self, site: str, index: int, x: Tensor, /) -> Tensor:
        if site == "stream_in":
            self.wires[index].skip_gain.weight.fill_(self.omega)
        elif site == "skip":
            self.variance = x.var().item()
        elif site == "branch_out":
            self.omega = (self.variance + x.var().item()) ** 0.5
        return x


@torch.no_grad()
def profile(model: Transformer, config: RunConfig, task: Task) -> None:
    """Set the skip gains of a `profiled` scheme from the first batch; other schemes are left as they are."""
    if config.scheme in SCHEMES and SCHEMES[config.scheme].profiled:
        inputs, _ = task.tensors(0, torch.device("cpu"))
        model(inputs, Profiler(model))
