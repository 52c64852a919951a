"""The record of a setting of a run, as torch-free as all records: its title, and what it may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .registry import Registry

Spot = Literal[
    "queries init", "queries", "mask", "weights init", "weights", "heads", "hidden", "stream", "head",
    "logits",
]  # fmt: skip
"""Where pasted code has lines of a setting. In attention: what it creates for queries q, keys k and values v,
and does to them; the mask; what it creates for the weights, and does with them; what it does to the heads'
results x [B, H, T, d_h]. In the FFN: its hidden layer as an expression of {}, where a gated one multiplies x.
In the model: the stream x after the embedding and each block, the head, and the logits."""
FORMULA = "its formula, written a second time"
"""What the tests compare a setting with that no others have implemented."""


@dataclass(frozen=True)
class Range:
    """Allowed values of one number. `above` and `below` exclude the end itself."""

    low: float
    high: float
    whole: bool = False
    above: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        over = value > self.low if self.above else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return over and under

    def text(self) -> str:
        """The range as the end of an error sentence: "a whole number from 1 to 1000"."""
        kind = "a whole number" if self.whole else "a number"
        low, high = (str(int(v)) if self.whole else f"{v:g}" for v in (self.low, self.high))
        if self.above:
            return f"{kind} above {low}, up to {high}"
        if self.below:
            return f"{kind} from {low} to below {high}"
        return f"{kind} from {low} to {high}"

    def nearest(self, value: float) -> float | None:
        """The closest allowed value, if it is well defined. It is offered, never applied."""
        if value != value or (self.above and value <= self.low):
            return None
        if self.below and value >= self.high:
            return None
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Setting:
    """A setting of a run. Its type and default stand beside it in `RunConfig`.

    title     the name that pages show
    about     one sentence more, or ""
    range     allowed numbers
    choices   allowed keys
    form      what else it may be, as an error sentence ends
    is_form   whether a value has that form
    off       None is allowed, and called "off"
    group     its group of "All settings" on the Duel page; "" for a setting with a place of its own
    axis      its values as an axis of a map; "" of a choice means all; None: it can't span a map
    tape      the values that the tape trains with; () for all
    training  it does nothing before the first step
    code      lines of pasted code where a number is not at its default; {value} stands for it
    oracle    what the tests compare a number with
    """

    title: str
    about: str = ""
    range: Range | None = None
    choices: Registry[Any] | None = None
    form: str = ""
    is_form: Callable[[Any], bool] | None = None
    off: bool = False
    group: str = ""
    axis: str | None = ""
    tape: tuple[Any, ...] = ()
    training: bool = False
    code: Mapping[Spot, str] = field(default_factory=dict)
    oracle: str = ""

    def allowed(self) -> str:
        """What it may be, as an error sentence ends."""
        if self.choices is not None:
            return f"one of {', '.join(self.choices.keys())}"
        if self.range is None:
            return self.form
        return f"off, or {self.range.text()}" if self.off else self.range.text()

    def __contains__(self, value: Any) -> bool:
        """Whether it may have a value of its type."""
        if self.choices is not None:
            return value in self.choices
        if self.range is not None:
            return value is None or value in self.range
        return self.is_form is None or self.is_form(value)
