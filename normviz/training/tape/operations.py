"""The operations of tape.cpp, in a list that a model is compiled to.

Names and numbers are those of the C++ file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag, auto

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...model.branches import Dropout


class Kind(IntEnum):
    """The kinds of operations."""

    EMBED, NORM, LINEAR, ACTIVATION, ATTENTION, MIX, GAIN, MASK, LOSS, GATED, ROTATE = range(11)


class Divisor(IntEnum):
    """What divides a row of a norm."""

    LAYER, RMS, UNIT, COMPLETED, PARTIAL = range(5)


class Activation(IntEnum):
    """The functions of single numbers."""

    RELU, GELU, TANH, ERF, SILU, RELU2 = range(6)


class Positions(IntEnum):
    """How an embedding knows positions: by learned vectors, by fixed ones, or not at all."""

    LEARNED, FIXED, ABSENT = range(3)


class Mask(IntEnum):
    """Which positions attention sees: itself and earlier ones, or all."""

    CAUSAL, NONE = range(2)


class Function(IntEnum):
    """A gain as a function of its number z: z, |z|, 1 - |z|, sigmoid s, sqrt(1 - s^2), exp, 1 - SiLU."""

    VALUE, SIZE, REST, SIGMOID, ROOT, EXP, GATE = range(7)


class Flag(IntFlag):
    """Properties of an operation; which gradients are added to others, or not computed."""

    ADD_A, ADD_B, ADD_C = auto(), auto(), auto()
    NO_A, NO_B = auto(), auto()
    ADD_WEIGHT = auto()
    ONE_PLUS = auto()
    PER_GROUP = auto()


NOTHING = Flag(0)


@dataclass(eq=False)
class Place:
    """A tensor [rows, width] of the tape: one of its own, or the columns of `whole` from `column` on.

    `pinned`: its gradient is kept for the probes. `uses` counts the inputs of operations that are this tensor
    or a part of it.
    """

    rows: int
    width: int
    whole: Place | None = None
    column: int = 0
    pinned: bool = False
    uses: int = 0

    @property
    def base(self) -> Place:
        """The tensor that has the memory of its own."""
        return self.whole or self

    def part(self, column: int, width: int) -> Place:
        """Some columns of this tensor."""
        return Place(self.rows, width, self.base, self.column + column)


Number = float | Callable[[], float]
"""A constant of an operation, or a function that gives it before each step."""


@dataclass(eq=False)
class Operation:
    """One operation; `tape.cpp` says what it computes. `saved` counts the floats that backward needs."""

    kind: Kind
    a: Place | None
    out: Place | None
    rows: int
    n: int
    groups: int = 1
    k: int = 0
    mode: int = 0
    b: Place | None = None
    c: Place | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None
    flags: Flag = NOTHING
    saved: int = 0
    c0: Number = 0.0
    c1: Number = 0.0

    @property
    def inputs(self) -> tuple[Place | None, ...]:
        """The three inputs, None where there is none."""
        return self.a, self.b, self.c


INTEGERS = """
    kind mode flags rows groups n k a b c lda ldb ldc out ldo ga gb gc gout weight bias save
"""
OP = np.dtype(
    [*((name, np.int64) for name in INTEGERS.split()), ("c0", np.float64), ("c1", np.float64)]
)
"""The struct Op of tape.cpp."""


@dataclass
class Program:
    """The operations of a model in the order of its forward pass, and the places that probes read.

    stream   [L+1] the stream after the embedding and each block
    masks    the operations that multiply by a mask, each with the dropout that draws it
    tables   the operations that read fixed numbers from what they save, and those numbers
    skip     [2L] the skip path of each sublayer as it enters the sum, over a factor
    branch   [2L] the branch as it enters the sum, over a factor
    reads    [2L] what the branch reads
    """

    operations: list[Operation] = field(default_factory=list)
    stream: list[Place] = field(default_factory=list)
    masks: list[tuple[Operation, Dropout]] = field(default_factory=list)
    tables: list[tuple[Operation, NDArray[np.float32]]] = field(default_factory=list)
    skip: list[tuple[Place, Number]] = field(default_factory=list)
    branch: list[tuple[Place, Number]] = field(default_factory=list)
    reads: list[Place] = field(default_factory=list)

    def add(self, operation: Operation) -> Place:
        """Put an operation at the end; its output."""
        self.operations.append(operation)
        for x in operation.inputs:
            if x is not None:
                x.base.uses += 1
        return operation.out or Place(0, 0)


def number(x: Number) -> float:
    """The present value of a constant."""
    return x() if callable(x) else x
