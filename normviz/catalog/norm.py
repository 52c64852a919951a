"""The record of a norm: its formula, learned parameters, invariances, source and oracle."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Learned:
    """A parameter of a norm: its name in the module, its symbol in the formula, its initial value.

    `start` is a number or "sqrt(d)"; the parameter has d entries, or one if `single`. A matrix has `rank` d
    entries, and `start` is "drawn": the initialisation draws it from the generator of its name, as it
    draws the matrices of the branches.
    """

    name: str
    symbol: str
    start: str
    single: bool = False
    rank: int = 0

    def value(self, width: int) -> float:
        """The initial value of every entry, for d = `width`. Raises ValueError for a matrix that is drawn."""
        return width**0.5 if self.start == "sqrt(d)" else float(self.start)

    def entries(self, width: int) -> int:
        """The number of entries, for d = `width`."""
        return 1 if self.single else width * (self.rank or 1)


@dataclass(frozen=True)
class Norm:
    """A norm: its formula (LaTeX, of x with d channels), its learned parameters, and its source.

    `shift_invariant`: x + c has the output of x, for the same c in every channel. `scale_invariant`:
    a x has the output of x, for a > 0. Both up to eps and for any learned values. `oracle` names the public
    implementation that the tests compare with; without one they compare with the formula, written
    out a second time. `warning` is a sentence that is shown with the norm, or empty.

    `code` is the Python expression of the module, with {width}, {eps}, and {steps} of the run if it needs
    them. The model and pasted code both use it. It names a class of `nn`, or a class of a module in
    `normviz/catalog/norms/*_torch.py` that is called with them and maps [..., width] to [..., width].
    `last` is the key of the norm before the output head where that is another one; it has to be a class of
    `nn`. Lists are sorted by `order`. `tape`: whether the tape has it; a run with another trains by eager.
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
    last: str = ""
    tape: bool = True

    def call(self, width: int | str, steps: int) -> str:
        """The Python expression of this norm over `width` channels, in a run of so many steps."""
        return self.code.format(width=width, eps=self.eps, steps=steps)

    @property
    def drawn(self) -> tuple[Learned, ...]:
        """Its matrices, whose initial values are drawn."""
        return tuple(parameter for parameter in self.learns if parameter.rank)


GAMMA = Learned("weight", r"\gamma", "1")
BETA = Learned("bias", r"\beta", "0")
