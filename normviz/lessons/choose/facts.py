"""What ships about each placement, read once: cells of the standard maps, the census, the norm cost.

Nothing is written here by hand. What no shipped file has is None, and the page says "not measured".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import fmean, median
from typing import Literal, get_args

import numpy as np

from ...catalog import INITS, NORMS, SCHEMES
from ...catalog.models import Model, census
from ...catalog.scheme import BRANCHES, NORMED, Place, Slots
from ...config import RunConfig
from ...links import encode, shown
from ...runs import Recording
from ...runs.archive import load
from ...runs.shipped import files
from ...runs.statistics import Spread, spread
from ...studies.maps.grid import Cell
from ...studies.maps.link import standard
from ...studies.maps.points import TRAINS, Point, point
from ...studies.maps.standard import MAPS
from ...studies.maps.summary import mark, trains
from .answers import GUESSES


@dataclass(frozen=True)
class Finding:
    """A statement, and the address of the page that shows where it comes from."""

    text: str
    to: str


# Addresses of other pages, relative to the guide's.

CENSUS, COST = "catalogue", "cost"


def map_address(key: str) -> str:
    """The address of a standard map."""
    return f"maps?{standard(key).query()}"


def claim_address(key: str) -> str:
    """The address of a claim, which opens."""
    return f"claims?claim={key}"


def duel_address(lanes: Sequence[RunConfig], **view: str) -> str:
    """The address of the duel of these lanes, with the view's parameters."""
    return f"./?{encode(lanes)}" + "".join(f"&{name}={word}" for name, word in view.items())


# Cells.


@dataclass(frozen=True, eq=False)
class CellFacts:
    """One run of a shipped map.

    gain   norm of the gradient at the embedding over its norm after the last block, at the first step
           and at the last one
    rms    RMS of the stream after the last block, at the first step and at the last one
    """

    point: Point
    gain: tuple[float, float]
    rms: tuple[float, float]

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self.point.cell.config


def _facts(cell: Cell, recording: Recording) -> CellFacts:
    grad, rms = recording.values("grad_hidden"), recording.values("stream_rms")
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = grad[:, 0] / grad[:, -1]
    return CellFacts(
        point(cell, recording), (float(gain[0]), float(gain[-1])),
        (float(rms[0, -1]), float(rms[-1, -1])),
    )  # fmt: skip


@cache
def _maps() -> Mapping[str, tuple[CellFacts, ...]]:
    """All cells of the shipped maps by the map's key. A cell that several maps share is in each."""
    wanted: dict[str, list[tuple[str, Cell]]] = defaultdict(list)
    for standard_map in MAPS:
        for cell in standard(standard_map.key).grid.cells:
            wanted[cell.key].append((standard_map.key, cell))
    facts: dict[str, list[CellFacts]] = defaultdict(list)
    for path in files("maps"):
        for recording in load(path):
            for key, cell in wanted[recording.config.key]:
                facts[key].append(_facts(cell, recording))
    return {key: tuple(cells) for key, cells in facts.items()}


def cells(key: str, **where: object) -> list[CellFacts]:
    """The cells of a standard map that have these settings."""
    return [
        cell
        for cell in _maps().get(key, ())
        if all(getattr(cell.config, name) == value for name, value in where.items())
    ]


def conditions(key: str, init: bool = True) -> str:
    """What all cells of a map share beside their depths, in words, as in "LayerNorm, no QK-norm, Xavier
    initialisation, 150 steps without warm-up, 3 seeds"; on request without the initialisation. An answer that
    is read from a map has them beside it: with others it may be another one."""
    grid = standard(key).grid
    base = grid.base
    words = [norms(base)]
    if init and grid.axis("init") is None:
        words.append(f"{INITS.label(base.init)} initialisation")
    steps = f"{base.steps} steps"
    words.append(steps if grid.axis("warmup") else f"{steps} without warm-up")
    return ", ".join([*words, f"{grid.seeds} seeds"])


def norms(config: RunConfig) -> str:
    """The norms of a model, as in "LayerNorm, no QK-norm"."""
    qk = f"QK-norm {shown('qk_norm', config.qk_norm).lower()}"
    return f"{NORMS.label(config.norm)}, {'no QK-norm' if config.qk_norm == 'off' else qk}"


def setting(key: str, depth: int) -> str:
    """The models of a map at a depth, in words."""
    base = standard(key).grid.base
    return f"{depth} blocks of width {base.width}, {shown('task', base.task)}, {conditions(key)}"


def tried(rates: Iterable[float]) -> str:
    """Learning rates in words, as in "7 rates from 0.0001 to 0.1"."""
    low, *_, high = them = sorted(rates)
    return f"{len(them)} rates from {low:g} to {high:g}"


# A placement in one setting, over the learning rates of a map.


Mark = Literal["trained and settled", "did not train", "still falling", "not settled"]
"""What came of a placement at a learning rate, by most seeds; the first two are of runs that settled."""
MARKS: tuple[Mark, ...] = get_args(Mark)
SETTLED = MARKS[:2]
TERMS = (
    f"{TRAINS} A rate has settled unless most of its seeds still fell at the last step, or are too noisy to "
    "judge."
)
"""What the words of the marks mean."""


def _mark(seeds: Sequence[Point]) -> Mark:
    """Of a run that still falls nothing is known of its end, however high its loss: it has not failed."""
    if mark(seeds) == "falling":
        return "still falling"
    if 2 * sum(point.kind == "not settled" for point in seeds) > len(seeds):
        return "not settled"
    return "trained and settled" if trains(seeds) else "did not train"


@dataclass(frozen=True, eq=False)
class Measured:
    """Cells that differ in the learning rate and the seed alone: by rate, ascending, all its seeds."""

    map: str
    scheme: str
    rates: Mapping[float, tuple[CellFacts, ...]]

    @cached_property
    def trained(self) -> tuple[float, ...]:
        """The rates at which the median over seeds trains."""
        return tuple(lr for lr, seeds in self.rates.items() if trains([s.point for s in seeds]))

    @cached_property
    def marks(self) -> Mapping[float, Mark]:
        """What came of each rate, as the map marks it."""
        return {lr: _mark([s.point for s in seeds]) for lr, seeds in self.rates.items()}

    def compared(self, word: Mark) -> tuple[float, ...]:
        """Those of the compared rates that have this mark."""
        return tuple(lr for lr in GUESSES if self.marks.get(lr) == word)

    @cached_property
    def best(self) -> float:
        """The rate of the lowest median loss, of the compared rates at which it trained and settled; where
        there is none of them, of all rates."""
        return min(
            self.compared("trained and settled") or self.rates,
            key=lambda lr: median(s.point.capped for s in self.rates[lr]),
        )

    @property
    def at_best(self) -> tuple[CellFacts, ...]:
        """All seeds at the best rate."""
        return self.rates[self.best]

    @property
    def config(self) -> RunConfig:
        """The first seed at the best rate."""
        return self.at_best[0].config

    @property
    def losses(self) -> list[float]:
        """Final loss of each seed at the best rate, at most chance."""
        return [cell.point.capped for cell in self.at_best]

    @property
    def loss(self) -> Spread:
        """Median and range of the final losses at the best rate."""
        return spread(self.losses)

    def means(self, rates: Iterable[float]) -> list[float]:
        """Of each seed the mean over these rates of its final loss, at most chance: what a rate that is
        picked among them without trying gives on average."""
        return [
            fmean(cell.point.capped for cell in seed)
            for seed in zip(*(self.rates[lr] for lr in rates), strict=True)
        ]

    def rms(self, end: int) -> Spread:
        """RMS of the stream after the last block at the best rate; `end` 0 the first step, 1 the last."""
        return spread([cell.rms[end] for cell in self.at_best])

    def gain(self, end: int) -> Spread:
        """The gradient at the embedding over that after the last block; `end` as for `rms`."""
        return spread([cell.gain[end] for cell in self.at_best])


@cache
def _measured(key: str, scheme: str, where: frozenset[tuple[str, object]]) -> Measured | None:
    rates: dict[float, list[CellFacts]] = defaultdict(list)
    for cell in cells(key, scheme=scheme, **dict(where)):
        rates[cell.config.lr].append(cell)
    ordered = {
        lr: tuple(sorted(rates[lr], key=lambda cell: cell.point.cell.seed)) for lr in sorted(rates)
    }
    return Measured(key, scheme, ordered) if ordered else None


def measured(key: str, scheme: str, **where: object) -> Measured | None:
    """A placement in the cells of a map that have these settings; None where there are none."""
    return _measured(key, scheme, frozenset(where.items()))


# The census.


def users(scheme: str) -> tuple[Model, ...]:
    """The stacks of blocks in which the census found a placement."""
    return tuple(model for model in census().models if model.placement == scheme)


def same_blocks(scheme: str) -> tuple[str, ...]:
    """Other placements with the same blocks, which differ by the norm on the embedding alone."""
    record = SCHEMES[scheme]
    return tuple(
        other.key
        for other in SCHEMES
        if other.key != scheme
        and (other.final_norm, other.streams) == (record.final_norm, record.streams)
        and (other.weight_gain, other.profiled) == (record.weight_gain, record.profiled)
        and _blocks(other.key) == _blocks(scheme)
    )


def _blocks(scheme: str) -> list[Slots]:
    places = [Place(block, 4, branch) for block in range(1, 5) for branch in BRANCHES]
    return [SCHEMES[scheme].slots(place) for place in places]


# The cost.


def norms_a_block(scheme: str) -> int:
    """Norms of the stream and of the branches in the first block, from the placement's record; those of
    queries, keys and values are not counted."""
    sublayers = [SCHEMES[scheme].slots(Place(1, 24, branch)) for branch in BRANCHES]
    slots = NORMED.keys() - {"norm_qkv"}
    return sum(sum(getattr(s, slot) for slot in slots) - s.shares_norm for s in sublayers)
