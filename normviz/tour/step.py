"""A step of the tour as a record: its duel, what to watch for, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..presets import Lanes
from ..runs import Recording

Runs = tuple[Recording, ...]


@dataclass(frozen=True)
class Question:
    """A question before the charts play. `answer` computes the right choice from the runs."""

    text: str
    choices: tuple[str, ...]
    answer: Callable[[Runs], int]


@dataclass(frozen=True)
class Step:
    """One step.

    look     what the charts show and where to look, without results; {1.depth} is lane B's depth
    found    the result; its {names} are filled with `numbers`, computed from the lanes' runs
    holds    whether the runs agree with `found`, because other hardware may give another result
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
        """The instructions, with the lanes' settings."""
        return self.look.format(*self.lanes())

    def caption(self, told: Runs) -> str | None:
        """The result with the runs' own numbers; None if the runs disagree with it."""
        if not self.holds(told):
            return None
        numbers = {name: of(told) for name, of in self.numbers.items()}
        return self.found.format(*(lane.config for lane in told), **numbers)
