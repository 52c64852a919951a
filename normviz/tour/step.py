"""A step of the tour as a record: the duel it opens, what to look at, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..presets import Lanes
from ..runs import Recording

Runs = tuple[Recording, ...]


@dataclass(frozen=True)
class Question:
    """Asked before the charts play. `answer` finds the right choice in the runs."""

    text: str
    choices: tuple[str, ...]
    answer: Callable[[Runs], int]


@dataclass(frozen=True)
class Step:
    """One step.

    look     what is shown and where to look, without results; {1.depth} is a setting of lane B
    found    what came out; its {names} are filled with `numbers`, found in the lanes' runs
    holds    whether the runs came out as `found` says: other hardware may give another result
    """

    key: str
    title: str
    lanes: Callable[[], Lanes]
    probe: str
    look: str
    found: str
    numbers: Mapping[str, Callable[[Runs], str]]
    holds: Callable[[Runs], bool]
    question: Question | None = None
    sources: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.title

    def where(self) -> str:
        """What to look at, with the lanes' settings."""
        return self.look.format(*self.lanes())

    def caption(self, told: Runs) -> str | None:
        """What came out, with the runs' own numbers; None if they came out otherwise."""
        if not self.holds(told):
            return None
        numbers = {name: of(told) for name, of in self.numbers.items()}
        return self.found.format(*(lane.config for lane in told), **numbers)
