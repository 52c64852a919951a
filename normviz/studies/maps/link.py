"""A page of maps as settings and as a link: what is swept, and which two settings span each map.

    v=1&across=depth&up=lr&seeds=3&scheme=post,pre&depth=2,4,8&lr=0.001,0.01&steps=150

A setting with several values, joined by commas, is an axis. The link also names every other setting
that is not as `links.PINNED` has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from textwrap import wrap
from typing import Any

from ...catalog import FAMILIES, SCHEMES
from ...catalog.families import places_of
from ...catalog.registry import meant
from ...config import CHOICES, DEFAULTS, RANGES, SETTINGS, RunConfig
from ...limits import MAX_MAPS
from ...links import FIELDS, PINNED, Codec, Params, as_word, query, shown
from .grid import Axis, Grid, SweepError, grid_of
from .layout import axis_of, spanned
from .standard import MAPS, RATES

SPAN = ("across", "up")
NAMES = (*SPAN, "seeds", *(name for name in FIELDS if name != "lr_edits"))
CODEC = Codec(NAMES, {name: word for name, word in PINNED.items() if name in NAMES})
LINE = 70
"""Characters of a line under a saved picture, which may be of one small map."""

MAP_STEPS = 150
"""Steps of each cell if a map is made from a duel: enough to see which cells train."""

BESIDE = ("pre", "post", "peri")
"""Placements beside a model's own."""


@dataclass(frozen=True)
class MapRequest:
    """Maps that somebody asked for. `words` are the settings as text, `seeds` among them."""

    words: Mapping[str, str]
    across: str
    up: str
    grid: Grid

    @property
    def fields(self) -> tuple[str, str]:
        """The settings across and up."""
        return self.across, self.up

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The settings across and up with their values, which may be one."""
        return axis_of(self.grid, self.across), axis_of(self.grid, self.up)

    @property
    def standard(self) -> str | None:
        """The standard map that this is, if it is one."""
        return next((m.key for m in MAPS if standard(m.key).shows == self.shows), None)

    @property
    def shows(self) -> tuple[str, str, Grid]:
        """What is on the page, however its settings were written."""
        return self.across, self.up, self.grid

    def values(self, field: str) -> str:
        """The values of a setting, as text."""
        return ",".join(map(as_word, axis_of(self.grid, field).values))

    def params(self) -> dict[str, str]:
        """The parameters of its link."""
        values = {name: self.values(name) for name in CODEC.pinned}
        span = {"across": self.across, "up": self.up, "seeds": str(self.grid.seeds)}
        return CODEC.params(span | values, always=self.fields)

    def query(self) -> str:
        """The query string of its link."""
        return query(self.params())

    def but(self, **words: str) -> MapRequest:
        """The same with other settings. Raises ConfigError or SweepError."""
        return ask({**self.words, **words}, self.across, self.up)

    def with_axis(self, side: str, field: str) -> MapRequest:
        """The same with another setting across or up; the one it replaces has its usual value."""
        other = self.up if side == "across" else self.across
        old = getattr(self, side)
        if field == old:
            return self
        if field == other:  # they change places
            return ask(self.words, self.up, self.across)
        words = {**self.words, old: as_word(DEFAULTS[old])}
        if self.grid.axis(field) is None:
            words[field] = SETTINGS[field].axis or ",".join(_choices(self.grid.base, field))
        span = {"across": self.across, "up": self.up, side: field}
        return ask(words, **span)


def _choices(base: RunConfig, field: str) -> Iterator[str]:
    """The choices of a setting that the family has: its placements and its tasks, but no own text."""
    places = places_of(base.family) or SCHEMES.keys()
    of = {"scheme": places, "task": FAMILIES[base.family].tasks}
    every = CHOICES[field].keys() if field in CHOICES else ()
    yield from (key for key in of.get(field, every) if key != "text")


def caption(grid: Grid, across: str, up: str, place: str = "/maps") -> list[str]:
    """What a saved picture of maps says of its origin: the settings that all cells share, and the link
    (`place` is the address of the page)."""
    spans = {axis.field for axis in grid.axes}
    shared = ", ".join(
        f"{SETTINGS[name].title} {shown(name, getattr(grid.base, name))}"
        for name in ("scheme", "norm", "init", "depth", "width", "lr", "warmup", "steps", "task")
        if name not in spans
    )
    seeds = "1 seed" if grid.seeds == 1 else f"{grid.seeds} seeds"
    link = f"{place}?{MapRequest({}, across, up, grid).query()}"
    return ["NormViz", *wrap(f"{shared}, {seeds} a cell", LINE), *wrap(link, LINE)]


def ask(words: Mapping[str, str], across: str, up: str) -> MapRequest:
    """Maps of these settings. Raises ConfigError or SweepError with one sentence."""
    if across == up:
        raise SweepError(f"{across} can't go both across and up: name two settings")
    for side, field in zip(SPAN, (across, up), strict=True):
        if field not in RANGES and field not in CHOICES:
            near = meant(field[:40], spanning())
            allowed = ", ".join(spanning())
            raise SweepError(
                f"{side} is {field[:40]!r}, allowed is one of {allowed}{near and '.'}{near}"
            )
    order = {name: i for i, name in enumerate(NAMES)}
    words = {name: words[name] for name in sorted(words, key=lambda name: order.get(name, -1))}
    grid = grid_of(words, RunConfig())
    count = prod(len(axis.values) for axis in grid.axes if axis.field not in (across, up))
    if count > MAX_MAPS:
        raise SweepError(f"these settings make {count} maps, at most {MAX_MAPS} fit on the page")
    return MapRequest(words, across, up, grid)


def map_of(config: RunConfig) -> MapRequest:
    """The first standard map that has a model's placement, one with its norm and QK-norm before others; if
    none has, one with it beside Pre-LN, whose cells may have to be filled."""
    has = [standard(m.key) for m in MAPS if config.scheme in m.words["scheme"].split(",")]
    alike = (it for it in has if _norms(it.grid.base) == _norms(config))
    if found := next(alike, next(iter(has), None)):
        return found
    return standard(MAPS.keys()[0]).but(scheme=f"pre,{config.scheme}")


def beside(config: RunConfig) -> MapRequest:
    """A model's placement beside others at its own depth, norm and QK-norm, over the learning rate, one seed:
    its cells have to be filled. Raises ConfigError or SweepError where that is too much."""
    words = {
        "scheme": ",".join(dict.fromkeys((*BESIDE, config.scheme))), "norm": config.norm,
        "qk_norm": config.qk_norm, "depth": str(config.depth), "lr": RATES, "steps": str(MAP_STEPS),
    }  # fmt: skip
    return ask(words, "scheme", "lr")


def _norms(config: RunConfig) -> tuple[str, str]:
    return config.norm, config.qk_norm


@lru_cache(maxsize=100)
def map_of_duel(lanes: tuple[RunConfig, ...]) -> MapRequest:
    """Maps over depth and learning rate of what a duel compares, one seed, for a first look.

    Where its lanes differ in too much for a page, their placements alone are compared.
    """
    base = RunConfig()
    most = max(MAP_STEPS, 2 * max(_of(lanes, "warmup")))
    steps = str(max(1, min(most, *_of(lanes, "steps"))))
    words = {**{name: SETTINGS[name].axis or "" for name in ("depth", "lr")}, "steps": steps}
    differ = {**words}
    for name in FIELDS:
        values = list(dict.fromkeys(_of(lanes, name)))
        if name in words or name in ("lr_edits", "text", "init_seed", "data_seed"):
            continue
        if len(values) > 1 or values[0] != getattr(base, name):
            differ[name] = ",".join(map(as_word, values))
            words[name] = differ[name] if name == "scheme" else as_word(values[0])
    try:
        return ask(differ, "depth", "lr")
    except SweepError:
        return ask(words, "depth", "lr")


def _of(lanes: Sequence[RunConfig], name: str) -> list[Any]:
    return [getattr(lane, name) for lane in lanes]


@cache
def standard(key: str) -> MapRequest:
    """A standard map."""
    standard_map = MAPS[key]
    return ask(standard_map.words, standard_map.across, standard_map.up)


def spanning() -> tuple[str, ...]:
    """Settings that may span a map: all with several values that go with every task."""
    return tuple(name for name, setting in SETTINGS.items() if setting.axis is not None)


def decode(params: Params) -> MapRequest:
    """What a link asks for. Raises ConfigError or SweepError with one sentence."""
    for problem in CODEC.problems(params):
        raise SweepError(problem)
    words = CODEC.words(params)
    span = [words.pop(side) for side in SPAN if side in words]
    if len(span) == 1:
        raise SweepError("the link gives one of across and up, allowed is both or none")
    grid = grid_of(words, RunConfig())
    across, up = span if len(span) == len(SPAN) else (axis.field for axis in spanned(grid))
    return ask(words, across, up)
