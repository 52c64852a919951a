"""What a sweep runs: axes, the cells of their grid, and the order in which a map fills.

Any setting of a run can be an axis. Seeds are no axis: each cell is run from several, and both its
seeds move together (`normviz.config.seeded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from ...catalog.setting import Range
from ...config import RANGES, SETTINGS, ConfigError, RunConfig, estimated_seconds, seeded
from ...limits import MAX_CELLS, MAX_SWEEP_HOURS, MAX_SWEEP_SEEDS
from ...links import shown


class SweepError(ValueError):
    """One sentence: what was given, what is allowed and how to mend it."""


@dataclass(frozen=True)
class Axis:
    """A setting and the values it takes. Numbers ascend, whatever order they were given in."""

    field: str
    values: tuple[Any, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether its values are numbers, which a map draws as a direction."""
        return self.field in RANGES

    def shown(self, value: Any) -> str:
        """A value as people read it."""
        return shown(self.field, value)


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: its config, its index on each axis, and which seed it is, from 0."""

    config: RunConfig
    at: tuple[int, ...]
    seed: int

    @cached_property
    def key(self) -> str:
        """Name of its result in the store."""
        return self.config.key

    def __hash__(self) -> int:
        return hash((self.at, self.seed))


@dataclass(frozen=True)
class Grid:
    """A sweep: what all cells share, what differs, and its cells in the order they are run."""

    base: RunConfig
    axes: tuple[Axis, ...]
    seeds: int
    cells: tuple[Cell, ...]

    def axis(self, field: str) -> Axis | None:
        """The axis of a setting, if it is one."""
        return next((axis for axis in self.axes if axis.field == field), None)

    @cached_property
    def estimated_seconds(self) -> float:
        """Rough seconds of one CPU core for all cells."""
        return sum(estimated_seconds(cell.config) for cell in self.cells)


def make(
    base: RunConfig,
    axes: Mapping[str, Sequence[Any]],
    seeds: int = 1,
    most: int = MAX_CELLS,
    hours: float = MAX_SWEEP_HOURS,
) -> Grid:
    """The grid of all combinations of the axes' values (typed, or as words), in coarse-first order: of `most`
    cells, and of estimated `hours` of a core, at most.

    An axis of one value is a setting. Raises SweepError or ConfigError with one sentence.
    """
    _check(axes, seeds, most)
    shape = [len(values) for values in axes.values()]
    points: dict[tuple[int, ...], RunConfig] = {}
    for at in product(*(range(n) for n in shape)):
        values = {field: given[i] for (field, given), i in zip(axes.items(), at, strict=True)}
        points[at] = base.replace(**values)
    typed: list[Axis] = []
    orders: list[list[int]] = []
    for k, field in enumerate(axes):
        line = [
            getattr(points[tuple(i if j == k else 0 for j in range(len(shape)))], field)
            for i in range(shape[k])
        ]
        _no_twins(field, line)
        order = sorted(range(len(line)), key=lambda i, line=line: _size(line[i]))
        orders.append(order if field in RANGES else list(range(len(line))))
        typed.append(Axis(field, tuple(line[i] for i in orders[-1])))
    varied_axes = [k for k, axis in enumerate(typed) if len(axis.values) > 1]
    cells = []
    for place in product(*(range(n) for n in shape)):
        config = points[tuple(orders[k][i] for k, i in enumerate(place))]
        for seed, seeded_config in enumerate(seeded(config, seeds)):
            cells.append(Cell(seeded_config, tuple(place[k] for k in varied_axes), seed))
    grid = Grid(cells[0].config, tuple(typed[k] for k in varied_axes), seeds, tuple(cells))
    _affordable(grid, hours)
    return replace(grid, cells=coarse_first(grid))


def coarse_first(grid: Grid) -> tuple[Cell, ...]:
    """Cells in the order that makes a map readable early.

    First of all seeds' first: the corners, the middle, then what halves the widest gaps, until all
    is there; then the same from the next seed. Among equals the longest first, which leaves no core
    idle at the end.
    """
    levels = [_levels(axis) for axis in grid.axes]

    def rank(cell: Cell) -> tuple[float, ...]:
        own = [
            level[i]
            for level, i, axis in zip(levels, cell.at, grid.axes, strict=True)
            if axis.is_ordered
        ]
        top = max(own, default=0)
        is_middle = top == 1 and min(own) == 1
        return (cell.seed, top, not is_middle, -estimated_seconds(cell.config), *cell.at)

    return tuple(sorted(grid.cells, key=rank))


def _levels(axis: Axis) -> list[int]:
    """For each value the round in which it is run: 0 the ends, 1 their middle, 2 the quarters..."""
    levels = [0] * len(axis.values)
    gaps = [(0, len(levels) - 1)]
    level = 1
    while gaps:
        halves = []
        for low, high in gaps:
            if high - low > 1:
                middle = (low + high) // 2
                levels[middle] = level
                halves += [(low, middle), (middle, high)]
        gaps, level = halves, level + 1
    return levels


def _size(value: Any) -> float:
    """A number's own size; a clip of "off" is the largest."""
    return float("inf") if value is None else value if isinstance(value, int | float) else 0.0


def _check(axes: Mapping[str, Sequence[Any]], seeds: int, most: int) -> None:
    allowed = Range(1, MAX_SWEEP_SEEDS, whole=True)
    if seeds not in allowed:
        raise SweepError(f"seeds is {seeds}, allowed is {allowed.text()}")
    for field, values in axes.items():
        if not values:
            raise SweepError(f"{field} has no value: name at least one, as in {field}=a,b")
        if field == "lr_edits" and len(values) > 1:
            raise SweepError("lr_edits can't be an axis: give one value, or schedule or warmup")
    moved = [field for field in ("init_seed", "data_seed") if len(axes.get(field, ())) > 1]
    if moved and seeds > 1:
        raise SweepError(f"seeds moves {moved[0]} by itself: give either seeds or {moved[0]}")
    count = seeds
    for values in axes.values():
        count *= len(values)
    if count > most:
        raise SweepError(
            f"this sweep has {count:,} runs and at most {most:,} are allowed: give fewer "
            "values or fewer seeds"
        )


def _no_twins(field: str, values: Sequence[Any]) -> None:
    twin = next((v for i, v in enumerate(values) if v in values[:i]), None)
    if twin is not None:
        raise SweepError(f"{field} names {shown(field, twin)} twice: give each value once")


def _affordable(grid: Grid, most: float) -> None:
    hours = grid.estimated_seconds / 3600
    if hours > most:
        what = "GPU" if grid.base.device == "cuda" else "CPU core"
        raise SweepError(
            f"this sweep would take about {hours:,.0f} hours of one {what} and at most "
            f"{most:g} are allowed: lower steps or depth, or give fewer values"
        )


def grid_of(
    words: Mapping[str, Any], base: RunConfig, most: int = MAX_CELLS, hours: float = MAX_SWEEP_HOURS
) -> Grid:
    """The grid of a command line's settings: `depth: "2,4,8"`, and `seeds: "3"` beside them; `most` and
    `hours` as in `make`."""
    given = dict(words)
    seeds = str(given.pop("seeds", "1"))
    if not seeds.isascii() or not seeds.isdigit() or len(seeds) > 6:
        raise SweepError(
            f"seeds is {seeds[:40]!r}, allowed is {Range(1, MAX_SWEEP_SEEDS, whole=True).text()}"
        )
    axes = {field: _values(value) for field, value in given.items()}
    for field in axes:
        if field not in SETTINGS:
            known = ", ".join(("seeds", *SETTINGS))
            raise ConfigError(f"unknown setting {field!r}: known settings are {known}", field)
    return make(base, axes, int(seeds), most, hours)


def _values(value: Any) -> list[Any]:
    """`2,4,8` as three words; what is not a word as it is."""
    if not isinstance(value, str):
        return [value]
    return [word.strip() for word in value.split(",")]
