"""What a placement is: a record that says which slots of a sublayer hold a norm, and its gains.

Every sublayer (attention or FFN, written F) of every single-stream scheme is

    x+ = N_main( a * N_skip(x)  +  g * N_out( F( s * N_in(x) ) ) )

          x ---+--- N_skip --- a ----------------------- (+) --- N_main --- x+
               |                                          |
               +--- N_in --- s --- F --- N_out --- g -----+

From the record come the forward pass (`normviz.nn.wire`), the initialisation, the formula, the
diagram and the readable code (`normviz.explain`), and the tests. Nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Branch = Literal["attention", "ffn"]


@dataclass(frozen=True)
class Place:
    """Where a sublayer stands: block 1..depth, and which branch it wraps."""

    block: int
    depth: int
    branch: Branch


@dataclass(frozen=True)
class Slots:
    """One sublayer: True where a slot holds a norm, and the three gains. The default is x + F(x)."""

    norm_in: bool = False
    norm_out: bool = False
    norm_skip: bool = False
    norm_main: bool = False
    skip_gain: float = 1.0
    branch_gain: float = 1.0
    input_gain: float = 1.0


GainSlot = Literal["skip_gain", "branch_gain", "input_gain", "weight_gain"]


@dataclass(frozen=True)
class Constant:
    """A named constant of a scheme: which gain it is, its symbol and its definition, in LaTeX."""

    gain: GainSlot
    symbol: str
    formula: str


def plain(_: Place) -> float:
    """The weight gain of a scheme that has no initialisation rule of its own."""
    return 1.0


@dataclass(frozen=True)
class Scheme:
    """A placement of norms.

    `slots` gives the sublayer at a place; `final_norm` a norm before the output head; `embed_norm`
    a norm on the embedding. `weight_gain` multiplies the initial value, output and FFN matrices of
    a place (on top of the chosen initialisation). `constants` names the gains that are not 1.
    """

    key: str
    label: str
    order: int
    sentence: str
    trouble: str
    source: str
    slots: Callable[[Place], Slots]
    final_norm: bool
    embed_norm: bool = False
    weight_gain: Callable[[Place], float] = plain
    constants: tuple[Constant, ...] = ()
