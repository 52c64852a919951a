"""The record of a norm: its formula, learned parameters, invariances, source and oracle."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Learned:
    """A parameter of a norm: its name in the module, its symbol in the formula, its initial value.

    `start` is a number or "sqrt(d)"; the parameter has d entries, or one if `single`.
    """

    name: str
    symbol: str
    start: str
    single: bool = False

    def value(self, width: int) -> float:
        """The initial value of every entry, for d = `width`."""
        return width**0.5 if self.start == "sqrt(d)" else float(self.start)


@dataclass(frozen=True)
class NormRecord:
    """A norm: its formula (LaTeX, of x with d channels), its learned parameters, and its source.

    `shift_invariant`: x + c has the output of x, for the same c in every channel. `scale_invariant`:
    a x has the output of x, for a > 0. Both up to eps and for any learned values. `oracle` names the public
    implementation that the tests compare with; without one they compare with the formula, written
    out a second time. `warning` is a sentence that is shown with the norm, or empty.

    `code` is the Python expression of the module, with {width} and {eps}. The model and pasted code
    both use it. It names a class of `nn`, or a class of a module in `normviz/model/norms/`
    that is called with width and eps and maps [..., width] to [..., width]. `order` sorts the switch.
    """

    key: str
    label: str
    formula: str
    sentence: str
    eps: float
    source: str
    order: int
    code: str
    learns: tuple[Learned, ...] = ()
    shift_invariant: bool = False
    scale_invariant: bool = False
    oracle: str = ""
    warning: str = ""

    def call(self, width: int | str) -> str:
        """The Python expression of this norm over `width` channels."""
        return self.code.format(width=width, eps=self.eps)


GAMMA = Learned("weight", r"\gamma", "1")
BETA = Learned("bias", r"\beta", "0")
