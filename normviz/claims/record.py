"""A claim as a record: who says what, the experiment, the quantities, and the rule that decides.

The rule is part of the record and stands before anything is run; what came out is not in here but
in a file of its own (`stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..config import RunConfig
from ..limits import estimated_seconds
from ..sweep.grid import Cell, Grid, read
from .evidence import Quantity, Sample
from .rule import Part

Arm = Mapping[str, str]
"""Settings as `normviz sweep` takes them, so with several values it is a grid; `label` names it."""


@dataclass(frozen=True)
class Number:
    """A number that each seed gives. `label` ends what its table says; `form` formats it."""

    label: str
    of: Callable[[Sample], float]
    form: str = ".2f"
    unit: str = ""


@dataclass(frozen=True)
class Theory:
    """A closed form that the figure shows as a line.

    assumes  what it needs, in words, beside the line
    arm      the arm whose first point (x0, y0) it may start from; "" for none
    of       (x, x0, y0) -> y
    """

    label: str
    assumes: str
    of: Callable[[float, float, float], float]
    arm: str = ""


@dataclass(frozen=True)
class Curve:
    """A figure: a quantity of every cell over a setting, a line an arm, a point a seed."""

    x: str
    y: Quantity
    log_x: bool = True
    log_y: bool = True


@dataclass(frozen=True)
class Layers:
    """A figure: a probe over the layers of each arm's last cell, at a step."""

    probe: str
    step: int
    log_y: bool = True


@dataclass(frozen=True)
class Strip:
    """A figure: some of the claim's numbers side by side, a point a seed. All of them by default."""

    title: str
    names: tuple[str, ...] = ()
    log_y: bool = False


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim.

    label    what it is about, in a few words
    sentence as the field states it
    source   who says so
    arms     the experiment: each arm is a grid of runs, all from the same seeds
    numbers  what is read off, a number a seed; the rule and the words name them
    rule     fixed before running; see `rule`
    words    what came out, honestly: {names} are numbers of the stored result
    seeds    how many by default
    lab      what measures instead of a training run, where the store has no such number
             (a key of `normviz.labs`: a timing would be one)
    open_    for each lane of the duel that shows it: an arm, and settings that pick its cell
    everyday teaching material repeats it
    """

    key: str
    label: str
    sentence: str
    source: str
    arms: Mapping[str, Arm]
    numbers: Mapping[str, Number]
    rule: tuple[Part, ...]
    words: str
    figure: Curve | Layers | Strip
    theory: tuple[Theory, ...] = ()
    seeds: int = 3
    lab: str = ""
    open_: tuple[tuple[str, Mapping[str, object]], ...] = ()
    everyday: bool = False

    @cached_property
    def order(self) -> tuple[str, int]:
        """C1 to C28, then E1 to E15."""
        return self.key[0], int(self.key[1:])

    def settings(self) -> dict[str, dict[str, str]]:
        """The settings of each arm, without its label."""
        return {
            arm: {name: word for name, word in words.items() if name != "label"}
            for arm, words in self.arms.items()
        }

    def grid(self, arm: str, seeds: int | None = None) -> Grid:
        """The runs of an arm. Raises ConfigError or SweepError."""
        return read({**self.settings()[arm], "seeds": str(seeds or self.seeds)}, RunConfig())

    def cells(self, seeds: int | None = None) -> tuple[Cell, ...]:
        """The runs of all arms, each config once, in the order in which they are run."""
        found: dict[str, Cell] = {}
        for arm in self.arms:
            for cell in self.grid(arm, seeds).cells:
                found.setdefault(cell.key, cell)
        return tuple(found.values())

    def whole(self, seeds: int | None = None) -> Grid:
        """All its runs as one grid without axes: what a sweep runs."""
        cells = self.cells(seeds)
        return Grid(cells[0].config, (), seeds or self.seeds, cells)

    def estimated_seconds(self, seeds: int | None = None) -> float:
        """Rough seconds of one CPU core."""
        return sum(estimated_seconds(cell.config) for cell in self.cells(seeds))

    def arm_label(self, arm: str) -> str:
        """What an arm is called."""
        return self.arms[arm].get("label", arm)

    def lanes(self) -> tuple[RunConfig, ...]:
        """The duel that shows it: of each arm the run that `open_` names, from the first seed.

        What a lab measures at initialisation has no runs: a duel of it trains, for the usual steps.
        """
        picks = self.open_ or tuple((arm, {}) for arm in self.arms)
        found = dict.fromkeys(self._pick(arm, where) for arm, where in picks)
        if self.lab:
            found = [lane.replace(steps=lane.steps or RunConfig().steps) for lane in found]
        return tuple(found)[:4]

    def _pick(self, arm: str, where: Mapping[str, object]) -> RunConfig:
        cells = [cell for cell in self.grid(arm, 1).cells if fits(cell.config, where)]
        return max(cells, key=lambda cell: cell.at).config

    def rule_words(self) -> tuple[str, ...]:
        """The rule, a sentence a part."""
        labels = {name: number.label for name, number in self.numbers.items()}
        return tuple(part.sentence(labels) for part in self.rule)


def fits(config: RunConfig, where: Mapping[str, object]) -> bool:
    """Whether a config has these settings."""
    return all(getattr(config, name) == value for name, value in where.items())
