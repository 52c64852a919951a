"""Groups of blocks with the same wiring, each drawn and written once as formula and code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from . import SCHEMES
from .scheme import BRANCHES, Place, Scheme, Slots

GAINS = tuple(f.name for f in fields(Slots) if f.type == "Gain")


@dataclass(frozen=True)
class Blocks:
    """Blocks `first` to `last` of a stack, which differ only in the values of the gains that are `named`."""

    first: int
    last: int
    attention: Slots
    ffn: Slots
    named: frozenset[str] = frozenset()

    @property
    def is_one_wire(self) -> bool:
        """Whether attention and FFN are wired alike."""
        return shape(self.attention, self.named) == shape(self.ffn, self.named)

    def words(self, depth: int) -> str:
        """The group in words: "every block", "block 1" or "blocks 2 to 12"."""
        if (self.first, self.last) == (1, depth):
            return "every block" if depth > 1 else "the block"
        if self.first == self.last:
            return f"block {self.first}"
        return f"blocks {self.first} to {self.last}"


def shape(slots: Slots, named: frozenset[str] = frozenset()) -> Slots:
    """A sublayer without the values of gains that have a name: equal for sublayers that are wired alike.

    A gain in `named` counts as a number even if its value is 1, as 1/sqrt(b) is in block 1.
    """
    gains: dict[str, Any] = {
        name: replace(getattr(slots, name), value=2.0, ramp=0.0) for name in GAINS if name in named
    }
    gammas: dict[str, Any] = dict.fromkeys(named.intersection(("gamma_in", "gamma_out")), 2.0)
    return replace(slots, **gains, **gammas)


def patterns(key: str, depth: int) -> tuple[Blocks, ...]:
    """Groups of consecutive blocks of a scheme that are wired alike, from the bottom up. The last
    block represents its group."""
    return _patterns(SCHEMES[key], depth)


@lru_cache(maxsize=256)  # a page calls it five times per lane, and once per placement of a list
def _patterns(scheme: Scheme, depth: int) -> tuple[Blocks, ...]:
    ranges = list[Blocks]()
    named = frozenset(c.gain for c in scheme.constants)
    for b in range(1, depth + 1):
        at, ff = (scheme.slots(Place(b, depth, branch)) for branch in BRANCHES)
        if ranges and all(
            shape(x, named) == shape(y, named)
            for x, y in ((ranges[-1].attention, at), (ranges[-1].ffn, ff))
        ):
            ranges[-1] = Blocks(ranges[-1].first, b, at, ff, named)
        else:
            ranges.append(Blocks(b, b, at, ff, named))
    return tuple(ranges)


SubLines = list[tuple[str, str]]


def each(key: str, depth: int, write: Callable[[Scheme, Slots], str]) -> SubLines:
    """(where, the result of `write`) for every sublayer that is wired differently."""
    scheme, lines = SCHEMES[key], list[tuple[str, str]]()
    groups = patterns(key, depth)
    for group in groups:
        where = "" if len(groups) == 1 else f" of {group.words(depth)}"
        if group.is_one_wire:
            lines.append((f"attention and FFN{where}", write(scheme, group.ffn)))
            continue
        lines.append((f"attention{where}", write(scheme, group.attention)))
        lines.append((f"FFN{where}", write(scheme, group.ffn)))
    return lines
