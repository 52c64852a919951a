"""A claim as a record: its source, the experiment, the quantities, and the rule that decides.

The rule is part of the record; `changed` says what of it, or of the experiment, changed after a result.
Results are in files of their own (`stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ...catalog import SCHEMES
from ...catalog.models import census
from ...config import RunConfig, estimated_seconds
from ...links import shown
from ..maps.grid import Cell, Grid, grid_of
from .evidence import Quantity, Sample
from .rule import Numbers, Part

QUESTIONS = {
    "train": "Does the place of the norm decide whether it trains?",
    "warmup": "Is warm-up needed?",
    "depth": "How deep can each placement go?",
    "rate": "Which learning rates does each placement tolerate?",
    "quality": "Which placement ends with the lower loss?",
    "gradient": "Where does the gradient vanish or grow?",
    "stream": "Does the residual stream grow with depth?",
    "update": "How far does one update move the model?",
    "norm": "Does it matter which norm is used?",
    "experiment": "Six experiments",
    "models": "What do real models do?",
    "": "Other claims",
}
"""The questions that claims are grouped by, in the order of the page."""

RUN_SECONDS, SEVERAL = 0.1, 2.0
"""Seconds of a run in addition to its steps, to build its model; and up to how many times what is estimated a
placement of several streams takes."""

Arm = Mapping[str, str]
"""Settings in the syntax of `normviz sweep`: several values make a grid. `label` names the arm."""

Pick = tuple[str, Mapping[str, object]]
"""One run of a seed: an arm, and the settings of its cell."""


@dataclass(frozen=True)
class Tuned:
    """A quantity at a learning rate that is chosen for each seed: of an arm's cells with these settings the
    rate with the lowest mean over the other seeds, or the rate of the tuned number `like`, which stands
    before it and has the same cells."""

    arm: str
    quantity: Quantity
    where: Mapping[str, object]
    like: str = ""


@dataclass(frozen=True)
class ChosenRate:
    """The rates that were chosen for the tuned number of this name."""

    name: str


@dataclass(frozen=True)
class Combined:
    """One tuned number and another combined, seed by seed."""

    combine: Callable[[Any, Any], Any]
    first: str
    second: str


@dataclass(frozen=True)
class Apart:
    """How far a number that was read off runs is from its median over all seeds (Brown and Forsythe 1974):
    two arms' means of it tell whether one varies more from seed to seed."""

    name: str


@dataclass(frozen=True)
class Number:
    """A number that each seed gives: read off its runs, at a rate that is chosen on the other seeds, of two
    such numbers, or one's distance from the median. `label` is its row in tables; `form` formats it."""

    label: str
    of: Callable[[Sample], float] | Tuned | ChosenRate | Combined | Apart
    form: str = ".2f"
    unit: str = ""


@dataclass(frozen=True)
class Theory:
    """A closed form that the figure shows as a line.

    assumes  its assumptions, written beside the line
    arm      the arm whose first point (x0, y0) it may start from; "" for none
    of       (x, x0, y0) -> y
    """

    label: str
    assumes: str
    of: Callable[[float, float, float], float]
    arm: str = ""


@dataclass(frozen=True)
class Curve:
    """A figure: a quantity over a setting, one line per arm and one point per seed."""

    x: str
    y: Quantity
    log_x: bool = True
    log_y: bool = True


@dataclass(frozen=True)
class Layers:
    """A figure: a probe over the layers of each arm's last cell, at one step."""

    probe: str
    step: int
    log_y: bool = True


@dataclass(frozen=True)
class Strip:
    """A figure: some of the claim's numbers (default: all), one point per seed.

    runs  of a number's name and all numbers of a seed: the runs that the number was read from, which its
          point opens. None where the points open nothing.
    """

    title: str
    names: tuple[str, ...] = ()
    log_y: bool = False
    runs: Callable[[str, Mapping[str, float]], Sequence[Pick]] | None = None


@dataclass(frozen=True)
class Scatter:
    """A figure: one point a run, a quantity over another, and whether the run trains. Arms that differ in
    the setting `shape` have shapes of their own. With `names_misfits` the claim's paragraph says which arms'
    runs the best cut of the other arms gets wrong."""

    x: Quantity
    y: Quantity
    log_x: bool = False
    log_y: bool = False
    names_misfits: bool = False
    shape: str = ""


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim.

    label    its subject, in a few words
    sentence the claim as the field states it
    source   where it is stated
    arms     the experiment: each arm is a grid of runs, and all arms use the same seeds; none where the
             numbers are counts of the census
    numbers  quantities with one number per seed; `rule` and `words` refer to them by name
    rule     what decides; see `rule`
    general  whether its parts are one statement, of all cases or of one thing despite another, so that one
             false part contradicts it
    words    the result in sentences; {names} are replaced by numbers of the stored result
    seeds    the default number of seeds
    changed  of what changed in experiment or rule after a first result that which could matter to the
             verdict, and why
    lab      key of `normviz.studies.labs`, for a quantity that training runs don't record (a timing)
    open_    for each lane of the duel that shows the claim: an arm, and the settings of its cell; by default
             all arms. Where rates were chosen it has the chosen one, unless a rate is among the settings:
             then `words` say why
    question key of the question in QUESTIONS that it belongs to
    finding  the result in a sentence, whose {names} are replaced by medians; before it the outcomes of the
             rule's parts that the sentence is true of, by first letters: true, false, no difference,
             undecided
    """

    key: str
    label: str
    sentence: str
    source: str
    arms: Mapping[str, Arm]
    numbers: Mapping[str, Number]
    rule: tuple[Part, ...]
    words: str
    figure: Curve | Layers | Strip | Scatter
    theory: tuple[Theory, ...] = ()
    seeds: int = 5
    changed: str = ""
    lab: str = ""
    open_: tuple[Pick, ...] = ()
    question: str = ""
    general: bool = False
    finding: tuple[str, str] = ("", "")

    @cached_property
    def scope(self) -> str:
        """What all its runs share and their sizes, for a chip: "Xavier, Markov chain, depth 6 to 48, width
        32, within 200 steps"; of a claim without runs what was counted, of a timing where it was measured."""
        if not self.arms:
            return f"language models of transformers {census().transformers}"
        if self.is_timing:
            return "one thread of one CPU"
        lanes = [cell.config for arm in self.arms for cell in self.grid(arm, 1).cells]
        shared = [
            shown(field, getattr(lanes[0], field))
            for field in ("init", "task")
            if len({getattr(lane, field) for lane in lanes}) == 1
        ]
        for size in ("depth", "width"):
            ends = sorted({getattr(lane, size) for lane in lanes})
            shared.append(f"{size} {' to '.join(map(str, dict.fromkeys((ends[0], ends[-1]))))}")
        steps = max(lane.steps for lane in lanes)
        shared.append(f"within {steps} steps" if steps else "before training")
        return ", ".join(shared)

    @property
    def everyday(self) -> bool:
        """Whether teaching material states it, as its source says."""
        return "teaching material" in self.source

    @property
    def is_timing(self) -> bool:
        """Whether its lab measures times, one after another."""
        return self.lab == "speed"

    @cached_property
    def order(self) -> tuple[str, int]:
        """By letter, then by number: C1, C2, ... E1, ..."""
        return self.key[0], int(self.key[1:])

    def settings(self) -> dict[str, dict[str, str]]:
        """The settings of each arm, without its label."""
        return {
            arm: {name: word for name, word in words.items() if name != "label"}
            for arm, words in self.arms.items()
        }

    def grid(self, arm: str, seeds: int | None = None, first: int = 0) -> Grid:
        """The runs of an arm from `seeds` seeds, of which `first` is the first. Raises ConfigError or
        SweepError."""
        base = RunConfig(init_seed=first, data_seed=first)
        return grid_of({**self.settings()[arm], "seeds": str(seeds or self.seeds)}, base)

    def cells(self, seeds: int | None = None, first: int = 0) -> tuple[Cell, ...]:
        """The runs of all arms in the order of execution, each config once."""
        cells: dict[str, Cell] = {}
        for arm in self.arms:
            for cell in self.grid(arm, seeds, first).cells:
                cells.setdefault(cell.key, cell)
        return tuple(cells.values())

    @cached_property
    def tuned(self) -> Mapping[str, Tuned]:
        """Its numbers at rates that are chosen, by name."""
        return {n: number.of for n, number in self.numbers.items() if isinstance(number.of, Tuned)}

    @cached_property
    def rates(self) -> Mapping[str, list[float]]:
        """The rates that each tuned number is chosen from, by its name."""
        return {
            name: sorted(
                {
                    cell.config.lr
                    for cell in self.grid(tuned.arm, 1).cells
                    if fits(cell.config, tuned.where)
                }
            )
            for name, tuned in self.tuned.items()
        }

    @cached_property
    def read(self) -> Mapping[str, Callable[[Sample], float]]:
        """What is read off the runs of a seed, by name: of a tuned number its quantity at each rate."""
        read = dict[str, Callable[[Sample], float]]()
        for name, number in self.numbers.items():
            if isinstance(number.of, Tuned):
                for rate in self.rates[name]:
                    read[read_name(name, rate)] = _at_rate(number.of, rate)
            elif not isinstance(number.of, ChosenRate | Combined | Apart):
                read[name] = number.of
        return read

    def whole(self, seeds: int | None = None, first: int = 0) -> Grid:
        """All its runs as one grid without axes, as a sweep takes it."""
        cells = self.cells(seeds, first)
        return Grid(cells[0].config, (), seeds or self.seeds, cells)

    def estimated_seconds(self, seeds: int | None = None) -> float:
        """At most about so many seconds of one CPU core take its runs; rough where a lab measures."""
        return _estimated(self, seeds or self.seeds)

    def arm_label(self, arm: str) -> str:
        """An arm's label."""
        return self.arms[arm].get("label", arm)

    def lanes(self, numbers: Numbers) -> tuple[RunConfig, ...]:
        """The duel that shows the claim: the runs that `open_` selects, of the first seed, at the rates that
        a result's numbers say were chosen."""
        picks = self.open_ or tuple((arm, {}) for arm in self.arms)
        return self.duel([(arm, self._with_rate(arm, where, numbers)) for arm, where in picks])

    def _with_rate(
        self, arm: str, where: Mapping[str, object], numbers: Numbers
    ) -> Mapping[str, object]:
        """These settings, with the rate that was chosen for their cells if one was and they have none."""
        rates = [
            numbers[name][0]
            for name, number in self.numbers.items()
            if isinstance(number.of, ChosenRate) and name in numbers
            for tuned in [self.tuned[number.of.name]]
            if tuned.arm == arm and tuned.where.items() <= where.items()
        ]  # fmt: skip
        return {"lr": rates[0], **where} if rates else where

    def duel(self, picks: Sequence[Pick], seed: int = 0) -> tuple[RunConfig, ...]:
        """The lanes of these runs with this seed, each once and at most four.

        A lab that measures at initialisation has no runs; its duel trains for the default steps.
        """
        lanes = dict.fromkeys(self._pick(arm, where, seed) for arm, where in picks)
        if self.lab:
            lanes = [lane.replace(steps=lane.steps or RunConfig().steps) for lane in lanes]
        return tuple(lanes)[:4]

    def _pick(self, arm: str, where: Mapping[str, object], seed: int) -> RunConfig:
        cells = [cell for cell in self.grid(arm, 1, seed).cells if fits(cell.config, where)]
        return max(cells, key=lambda cell: cell.at).config

    def rule_words(self) -> tuple[str, ...]:
        """The rule, one sentence per part."""
        labels = {name: number.label for name, number in self.numbers.items()}
        return tuple(part.sentence(labels) for part in self.rule)


@cache
def _estimated(claim: Claim, seeds: int) -> float:
    return sum(
        RUN_SECONDS + estimated_seconds(cell.config) * (1 if _is_one_stream(cell) else SEVERAL)
        for cell in claim.cells(seeds)
    )


def _is_one_stream(cell: Cell) -> bool:
    scheme = cell.config.scheme
    return scheme not in SCHEMES or SCHEMES[scheme].streams == "one"


def read_name(name: str, rate: float) -> str:
    """What a tuned number at one rate is called among the numbers of a result."""
    return f"{name} at {rate:g}"


def _at_rate(tuned: Tuned, rate: float) -> Callable[[Sample], float]:
    return lambda sample: tuned.quantity.of(sample.run(tuned.arm, lr=rate, **tuned.where))


def fits(config: RunConfig, where: Mapping[str, object]) -> bool:
    """Whether a config has these settings."""
    return all(getattr(config, name) == value for name, value in where.items())
