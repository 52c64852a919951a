"""The record of a placement: the slots of a sublayer that hold a norm, and its gains.

Every sublayer (attention or FFN, written F) of every single-stream scheme is

    u  = N_fork( r x + e x_0 )                                   x_0: the embedding
    f  = g * N_out( F( s N_in(u or x_b) ) )                      x_b: what entered the block
    x+ = m N_main( a N_skip(u) + c x_b + f )

          x --- r, e --- N_fork ---+--- N_skip --- a ----------- (+) --- N_main --- m --- x+
                                   |                              |
                                   +--- N_in --- s --- F --- N_out --- g

Where the record does not set them, gains are 1, e and c are 0, and no slot holds a norm. From the record
come the forward pass (`normviz.model.wire`), the initialisation, the formula, the diagram and the
readable code (`normviz.lessons.anatomy`), and the tests. Nothing is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Branch = Literal["attention", "ffn"]
Matrix = Literal["query_key", "value", "out", "up", "down"]


@dataclass(frozen=True)
class Place:
    """The place of a sublayer: block 1..depth, and the branch that it wraps."""

    block: int
    depth: int
    branch: Branch

    @property
    def number(self) -> int:
        """The sublayer's number, 1..2L."""
        return 2 * self.block - (self.branch == "attention")


BRANCHES: tuple[Branch, ...] = ("attention", "ffn")
Learned = Literal["", "block", "sublayer", "channel"]


@dataclass(frozen=True)
class Gain:
    """A multiplier: its value (the initial one where it is learned) and how it is learned.

    learned  "" a constant; "block" one number for both sublayers of a block; "sublayer" one number;
             "channel" one number a channel
    ramp     it rises in a straight line from 0 to its value over this share of the run's steps
    unit     "sqrt(d)": its value counts square roots of the stream's width
    stored   "1/sqrt(d)": the parameter starts there, and a constant factor makes it the gain. The
             size of Adam's steps does not depend on the factor, so the gain moves faster by it
    over     a constant that divides the gain, learned or not
    """

    value: float = 1.0
    learned: Learned = ""
    ramp: float = 0.0
    unit: Literal["1", "sqrt(d)"] = "1"
    stored: Literal["value", "1/sqrt(d)"] = "value"
    over: float = 1.0

    @property
    def is_one(self) -> bool:
        """Whether this is the constant 1."""
        return self == ONE

    @property
    def is_zero(self) -> bool:
        """Whether this is the constant 0."""
        return self == ZERO


ONE, ZERO = Gain(), Gain(0.0)

Mix = Literal["sum", "lerp", "variance"]


@dataclass(frozen=True)
class Slots:
    """One sublayer: True where a slot holds a norm, and its gains. The default is x + F(x).

    gamma_in, gamma_out  initial learned scale of that norm, as a multiple of its usual start
    norm_inner           a norm inside the branch, before its last matrix
    norm_qkv             norms of queries, keys and values, over the channels of a head
    unit_qk              queries and keys of a head have length sqrt(d_h), whatever the norm; with
                         the softmax's 1/sqrt(d_h) the logits are sqrt(d_h) times their cosine
    qk_gain              of queries and keys, after their norms: the same for both
    hidden_gain          of the FFN's hidden layer, before its activation
    head_gain            a learned gain of each head, before the output matrix
    spectral             each matrix W of the branch is used as gamma W / sigma: sigma is its largest
                         singular value, gamma a learned number that starts at 1
    branch_reads         "block": the branch reads the input of the block, not the result of attention
    shares_norm          the FFN reads the output of attention's norm: one norm for both
    mix                  how the branch's gain g acts on skip path and branch: "sum" a, g as above;
                         "lerp" 1 - |g|, |g|; "variance" sqrt(1 - s^2), s with s = sigmoid(g / 0.3)
    shifts               what a and g multiply has a learned shift a channel added first, 0 at the start
    first_value          share of the first block's values that attention mixes with its own
    gate                 x+ is multiplied by 1 - SiLU(q), q learned a block and 0 at the start, in
                         the forward pass alone: gradients pass as if it were not there
    """

    norm_fork: bool = False
    norm_in: bool = False
    norm_out: bool = False
    norm_skip: bool = False
    norm_main: bool = False
    gamma_in: float = 1.0
    gamma_out: float = 1.0
    norm_inner: bool = False
    norm_qkv: bool = False
    unit_qk: bool = False
    qk_gain: Gain = ONE
    hidden_gain: Gain = ONE
    head_gain: bool = False
    spectral: bool = False
    stream_gain: Gain = ONE
    embed_gain: Gain = ZERO
    input_gain: Gain = ONE
    skip_gain: Gain = ONE
    block_gain: Gain = ZERO
    branch_gain: Gain = ONE
    main_gain: Gain = ONE
    branch_reads: Literal["stream", "block"] = "stream"
    shares_norm: bool = False
    mix: Mix = "sum"
    shifts: bool = False
    first_value: float = 0.0
    gate: bool = False

    @property
    def is_about_attention(self) -> bool:
        """Whether it changes something that attention alone has."""
        sizes = self.norm_qkv or self.unit_qk or not self.qk_gain.is_one
        return sizes or self.head_gain or self.first_value != 0.0


GainSlot = Literal[
    "stream_gain",
    "embed_gain",
    "input_gain",
    "skip_gain",
    "block_gain",
    "branch_gain",
    "main_gain",
    "gamma_in",
    "gamma_out",
    "weight_gain",
    "qk_gain",
    "hidden_gain",
    "logit_gain",
]


@dataclass(frozen=True)
class Constant:
    """A named constant of a scheme: which gain it is, its symbol and its definition in LaTeX, and the
    definition in Python as a function of L, the block b and the sublayer k = 1..2L. Of a gain that rises,
    `code` is the share of the run after which it is fully there."""

    gain: GainSlot
    symbol: str
    formula: str
    code: str = ""


def plain(_: Place, _matrix: Matrix) -> float:
    """The weight gain 1, of a scheme without an initialisation rule of its own."""
    return 1.0


Family = Literal[
    "Pre-LN and Post-LN",
    "Norms around the branch",
    "Scaled skip",
    "Scaled branch",
    "Norms inside the branch",
    "Other paths",
    "No norm",
    "Several streams",
    "Your own",
]


NORMED = {
    "norm_fork": "the stream before it splits",
    "norm_skip": "the skip path",
    "norm_in": "a branch's input",
    "norm_inner": "a branch's inside",
    "norm_qkv": "queries, keys and values",
    "norm_out": "a branch's output",
    "norm_main": "the sum",
}
"""What the norm in each slot norms."""


@dataclass(frozen=True)
class Scheme:
    """A placement of norms.

    `slots` gives the sublayer at a place; `final_norm` a norm before the output head; `embed_norm`
    a norm on the embedding. `norm` is the key of the norm that all slots hold, where the scheme
    leaves no choice, and `logit_gain` multiplies the logits. `constraint` names the rule
    for the weights before the first step and after each (`catalog.constraints`). `weight_gain` multiplies
    the initial matrices of a place (on top of the chosen initialisation); `embedding_std` is the
    standard deviation of the token embedding, of width and depth, where the scheme has its own.
    With `profiled` the learned skip gains start from one forward pass. `streams` names the
    state that passes from sublayer to sublayer (`catalog.streams`); where it is not one stream,
    `equations` has in LaTeX what `slots` does not express, and `history` counts the values of a block
    that later blocks still use. `constants` names the gains that are not 1.
    `used_by` names models.
    `oracle` names implementations by others, with "; " between them, that the tests compare with this
    one (`catalog.models.differences` has the results).
    """

    key: str
    label: str
    order: int
    family: Family
    sentence: str
    trouble: str
    source: str
    slots: Callable[[Place], Slots]
    final_norm: bool
    embed_norm: bool = False
    norm: str | None = None
    logit_gain: Gain = ONE
    constraint: str = "none"
    weight_gain: Callable[[Place, Matrix], float] = plain
    embedding_std: Callable[[int, int], float] | None = None
    profiled: bool = False
    streams: str = "one"
    equations: tuple[str, ...] = ()
    history: int = 0
    constants: tuple[Constant, ...] = ()
    used_by: str = ""
    oracle: str = ""

    @property
    def in_a_sublayer(self) -> str:
        """What every sublayer norms, and whether the embedding is, as in "norms the sum"; empty where norms
        differ from block to block, or there are several streams."""
        every = [self.slots(Place(b, 12, branch)) for b in range(1, 13) for branch in BRANCHES]
        normed = {
            tuple(words for slot, words in NORMED.items() if getattr(at, slot)) for at in every
        }
        if self.streams != "one" or len(normed) > 1:
            return ""
        (norms,) = normed
        norms = ("the embedding",) * self.embed_norm + norms
        words = f"norms {' and '.join(norms)}" if norms else "has no norm in its blocks"
        return re.sub(r"(a branch's .*)a branch's ", r"\1", words)
