"""The place of every tensor in the buffers of activations and of gradients.

Activations lie one after the other, since the backward pass needs most of them. Gradients share
memory: one takes the place of another that is no longer needed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...config import RunConfig
from ...model.flat import Flat
from .operations import OP, Activation, Flag, Kind, Number, Operation, Place, Program, number

STEP = 16
"""Places begin at multiples of this many floats, a cache line."""


@dataclass
class Arena:
    """The operations as tape.cpp reads them, and the sizes of both buffers in floats.

    `values` and `grads` have the offset of each tensor with memory of its own; `saves` that of what each
    operation saves; `rising` has the constants that change from step to step, by operation and name.
    """

    operations: NDArray[np.void]
    value_size: int
    grad_size: int
    values: dict[Place, int]
    grads: dict[Place, int]
    saves: dict[Operation, int]
    rising: list[tuple[int, str, Number]]


def scratch_sizes(config: RunConfig, program: Program) -> tuple[int, int]:
    """How many floats `scratch` and how many doubles `sums` of tape.cpp have."""
    c, gains = config, [o.n // o.k for o in program.operations if o.kind == Kind.GAIN]
    scratch = max(c.seq_len**2 + 8 * c.seq_len, (c.seq_len + 1) * c.width, *gains)
    return scratch, max(2 * max(gains, default=1), 2 * c.width, c.seq_len)


class Buffers:
    """The memory of a run beside its parameters: activations `values`, their gradients `grads`, scratch
    memory, and what a watched step saw of `attention` [L, 3]."""

    def __init__(self, config: RunConfig, program: Program, laid: Arena) -> None:
        scratch, sums = scratch_sizes(config, program)
        self.values = np.zeros(laid.value_size, np.float32)
        self.grads = np.zeros(laid.grad_size, np.float32)
        self.scratch = np.zeros(scratch, np.float32)
        self.sums = np.zeros(sums)
        self.attention = np.zeros((config.depth, 3))


def rounded(size: int) -> int:
    """A size in floats, up to the next multiple of STEP."""
    return -(-size // STEP) * STEP


def arena(program: Program, flat: Flat) -> Arena:
    """Lay out a program for the parameters in a flat buffer."""
    values, saves, value_size = _values(program)
    gradients = _Gradients(flat)
    operations = np.zeros(len(program.operations), OP)
    rising: list[tuple[int, str, Number]] = []
    for i in reversed(range(len(program.operations))):
        o = program.operations[i]
        row: dict[str, Any] = {
            "kind": o.kind, "mode": o.mode, "rows": o.rows, "groups": o.groups, "n": o.n, "k": o.k,
            "weight": gradients.parameter(o.weight), "bias": gradients.parameter(o.bias),
            "save": saves[o], "c0": number(o.c0), "c1": number(o.c1),
        }  # fmt: skip
        for name, x in zip(("a", "b", "c", "out"), (*o.inputs, o.out), strict=True):
            if x is not None:
                row[name] = values[x.base] + x.column
                row["ldo" if name == "out" else f"ld{name}"] = x.base.width
        row |= gradients.of(o)
        operations[i] = tuple(row.get(name, 0) for name in OP.names or ())
        rising += [(i, name, c) for name, c in (("c0", o.c0), ("c1", o.c1)) if callable(c)]
    return Arena(operations, value_size, gradients.size, values, gradients.slots, saves, rising)


def _values(program: Program) -> tuple[dict[Place, int], dict[Operation, int], int]:
    """The offset of each tensor, the offset of what each operation saves, and the size of both."""
    values: dict[Place, int] = {}
    saves: dict[Operation, int] = {}
    size = 0
    for o in program.operations:
        is_relu = o.kind == Kind.ACTIVATION and o.mode == Activation.RELU
        if o.out is not None and is_relu and o.a is not None and o.a.uses == 1:
            values[o.out] = values[o.a]  # backward needs only the sign, which the output has
        elif o.out is not None:
            values[o.out], size = size, size + rounded(o.out.rows * o.out.width)
        saves[o] = size
        size += rounded(o.saved)
    return values, saves, size


class _Gradients:
    """Gives gradients their places, from the last operation to the first."""

    def __init__(self, flat: Flat) -> None:
        self.flat = flat
        self.size = 0
        self.slots: dict[Place, int] = {}
        self.free: dict[int, list[int]] = defaultdict(list)
        self.owners: dict[int, int] = {}
        self.written: set[tuple[Place, int]] = set()
        self.learned: set[Tensor] = set()

    def parameter(self, p: Tensor | None) -> int:
        """The offset of a parameter in the flat buffer, or -1."""
        if p is None:
            return -1
        return (p.data_ptr() - self.flat.values.data_ptr()) // self.flat.values.element_size()

    def of(self, o: Operation) -> dict[str, int]:
        """The places of an operation's gradients, and its flags."""
        flags, row = o.flags, {"gout": self.slots[o.out] if o.out else 0}
        if o.weight is not None:
            if o.weight in self.learned:
                assert o.kind in (Kind.GAIN, Kind.EMBED), "only gains, and a tied head, share one"
                assert o.bias is None or o.kind == Kind.EMBED
                flags |= Flag.ADD_WEIGHT
            self.learned.add(o.weight)
        for name, x in zip("abc", o.inputs, strict=True):
            if x is None:
                continue
            at = (x.base, x.column)
            if at in self.written:
                flags |= Flag[f"ADD_{name.upper()}"]
            elif self._same(o, name, x):  # the same numbers: no copy
                assert o.out is not None
                self.slots[x] = slot = self.slots[o.out]
                self.owners[slot] += 1
                flags |= Flag[f"NO_{name.upper()}"]
            elif x.base not in self.slots:
                self.slots[x.base] = self._take(x.base)
            self.written.add(at)
            row[f"g{name}"] = self.slots[x.base] + x.column
        if o.out is not None and not o.out.pinned:
            self._drop(o.out)
        return {**row, "flags": int(flags)}

    def _same(self, o: Operation, name: str, x: Place) -> bool:
        """Whether the gradient of this input is that of the output, and no later operation writes to it."""
        factor = {"a": o.c0, "b": o.c1}.get(name)
        alone = x.whole is None and x.uses == 1 and not x.pinned
        return o.kind == Kind.MIX and factor == 1.0 and alone and not (o.out and o.out.pinned)

    def _take(self, x: Place) -> int:
        size = rounded(x.rows * x.width)
        if self.free[size]:
            slot = self.free[size].pop()
        else:
            slot, self.size = self.size, self.size + size
        self.owners[slot] = 1
        return slot

    def _drop(self, x: Place) -> None:
        slot = self.slots[x]
        self.owners[slot] -= 1
        if not self.owners[slot]:
            self.free[rounded(x.rows * x.width)].append(slot)
