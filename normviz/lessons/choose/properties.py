"""The property table: what is claimed of each placement, beside what was measured here.

A cell's claims are records of `normviz.studies.claims` with their verdicts. Its measurement comes from a
shipped map, the census, or the norm cost; None where nothing that ships measures it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from ...catalog import INITS, SCHEMES
from ...catalog.models import census
from ...catalog.registry import Registry
from ...formats import listed
from ...runs.statistics import Spread
from ...studies.claims import CLAIMS, Claim
from ...studies.claims.sentences import chip
from ...studies.claims.stored import explained, finding, shipped_result
from ...studies.maps.link import standard
from ...studies.norm_cost import stored_results
from ...studies.norm_cost.findings import without
from ..anatomy import gradient_path, plain
from .answers import DEEPER, MAP, MODERN, depths
from .facts import (
    CENSUS,
    COST,
    MARKS,
    Finding,
    Measured,
    claim_address,
    conditions,
    duel_address,
    map_address,
    measured,
    norms_a_block,
    same_blocks,
    tried,
    users,
)

ROWS = ("pre", "post", "peri", "resp", "deepnorm")
"""Placements of the table: those of the map with RMSNorm and QK-norm."""


@dataclass(frozen=True)
class ClaimLine:
    """A claim's subject, its verdict here, the same as a sentence, its finding in a sentence, its numbers
    in words, and the address of its card. All sentences are empty where no result ships."""

    key: str
    label: str
    verdict: str
    sentence: str
    finding: str
    explained: str
    to: str


@cache
def claim_line(key: str) -> ClaimLine:
    """The line of a claim, of what ships."""
    claim: Claim = CLAIMS[key]
    result = shipped_result(claim)
    words = ("", "", "")
    if result is not None:
        words = result.verdict(claim).sentence, finding(claim, result), explained(claim, result)
    return ClaimLine(key, claim.label, chip(claim, result), *words, claim_address(key))


# What was measured of a placement in one setting.


def rates(measurement: Measured) -> Finding:
    """At how many of the rates tried it trained and settled, and what came of the others."""
    marks = measurement.marks
    at = {word: [f"{lr:g}" for lr, mark in marks.items() if mark == word] for word in MARKS}
    words = f"{MARKS[0]} at {len(at[MARKS[0]]) or 'none'} of {tried(marks)}"
    if len(at["did not train"]) < len(marks):
        words += "".join(f"; {word} at {', '.join(at[word])}" for word in MARKS[1:] if at[word])
    return Finding(words, map_address(measurement.map))


def loss(measurement: Measured) -> Finding:
    """Its final loss at its best rate, and the lowest that can be reached. Where it trained at no rate, its
    lowest loss beside chance."""
    first = measurement.at_best[0].point
    floor, words = first.floor, f"{_span(measurement.loss, '.2f')} nats"
    if measurement.trained:
        words += f" at its best rate, {measurement.best:g}"
    else:
        none = f"trained at none of {tried(measurement.rates)}"
        words = f"{none}: {words} at the lowest, chance {first.chance:.2f}"
    return Finding(
        words + ("" if floor is None else f"; floor {floor:.2f}"),
        duel_address([measurement.config]),
    )


def stream(measurement: Measured) -> Finding:
    """The RMS of the stream after the last block, before training and after it."""
    return Finding(
        f"RMS after the last block {_span(measurement.rms(0))} at the first step, "
        f"{_span(measurement.rms(1))} at the last",
        duel_address([measurement.config], probe="stream_rms"),
    )


def gradient(measurement: Measured) -> Finding:
    """How much of the gradient reaches the embedding, before training and after it."""
    return Finding(
        f"from the last block to the embedding times {_span(measurement.gain(0))} at the first step, "
        f"{_span(measurement.gain(1))} at the last",
        duel_address([measurement.config], probe="grad_hidden"),
    )


def _span(spread: Spread, form: str = ".2g") -> str:
    """Median and range: "1.26 (seeds 1.25 to 1.27)"."""
    middle, low, high = (format(x, form) for x in (spread.median, spread.low, spread.high))
    return middle if low == high else f"{middle} (seeds {low} to {high})"


def cost(scheme: str) -> Finding:
    """Norms of a block by its record. Only a step of Pre-LN was timed."""
    words = f"{norms_a_block(scheme)} norms a block, QK-norm not counted"
    if scheme != "pre":
        return Finding(f"{words}; its training step was not timed", COST)
    measurement = stored_results.shipped()
    without_norms = without(measurement)
    return Finding(
        f"{words}; {without_norms[0].lower()}{without_norms[1:]} ({measurement.text()})", COST
    )


def used(scheme: str) -> Finding:
    """How often the census found it."""
    stacks = len(census().models)
    words = f"{len(users(scheme))} of {stacks} stacks of blocks of language models in the census"
    for other in same_blocks(scheme):
        if models := users(other):
            words += (
                f"; {len(models)} as {SCHEMES.label(other)}, which differs only by the norm on the "
                "embedding"
            )
    return Finding(words, CENSUS)


# The columns.


def modern(scheme: str) -> Measured | None:
    """A placement in the map with RMSNorm and QK-norm, without warm-up; None where it was not run there."""
    return measured(MODERN, scheme, warmup=0)


def path(scheme: str) -> Finding | None:
    """The factor of a gradient on its way down a sublayer by the placement's record, and what all
    blocks together did to it."""
    measurement = modern(scheme)
    if measurement is None:
        return None
    gradient_finding = gradient(measurement)
    factors = (
        plain(latex.partition("= ")[2])
        for _, latex in gradient_path(scheme, measurement.config.depth)
    )
    return Finding(
        f"{' or '.join(factors)} a sublayer; {gradient_finding.text}", gradient_finding.to
    )


def _of(read: Callable[[Measured], Finding]) -> Callable[[str], Finding | None]:
    def find(scheme: str) -> Finding | None:
        measurement = modern(scheme)
        return None if measurement is None else read(measurement)

    return find


WARM = "warmup"


def warm_up(scheme: str) -> Finding | None:
    """Of the rates tried, how many train without a warm-up and how many with the longest one."""
    axis = standard(WARM).grid.axis("warmup")
    assert axis is not None
    none, longest = axis.values[0], axis.values[-1]
    without, with_it = (measured(WARM, scheme, warmup=steps) for steps in (none, longest))
    if without is None or with_it is None:
        return None
    return Finding(
        f"{without.config.depth} blocks: {len(without.trained)} of {tried(without.rates)} train without, "
        f"{len(with_it.trained)} with a warm-up of {longest} steps ({conditions(WARM)})",
        map_address(WARM),
    )


def by_depth(key: str, scheme: str) -> dict[int, Measured]:
    """A placement at each depth that a map measured, ascending; of the guide's map with its other depths."""
    keys = (key, DEEPER) if key == MAP else (key,)
    found = {d: measured(k, scheme, depth=d) for k in keys for d in depths(k)}
    return {d: it for d, it in sorted(found.items()) if it is not None}


def deepest(key: str, scheme: str) -> int | None:
    """The largest depth at which some rate trains; 0 for none, None where none was measured."""
    found = by_depth(key, scheme)
    return max((d for d, it in found.items() if it.trained), default=0) if found else None


def reach(key: str, scheme: str) -> str:
    """Up to how many blocks it trains at some of the rates tried, which those are at each depth, and where it
    still fell in deeper models: "up to 8 of 96 blocks (2, 4 and 8 blocks: 7 rates from 0.0001 to 0.1; 24 and
    96 blocks: 4 rates from 0.001 to 0.03), still falling with 32 blocks at 0.0001"."""
    found, most = by_depth(key, scheme), deepest(key, scheme) or 0
    ran, fell = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for blocks, it in found.items():
        ran[tried(it.rates)].append(str(blocks))
        at = [f"{lr:g}" for lr, mark in it.marks.items() if mark == "still falling"]
        if at and blocks > most:
            fell[listed(at)].append(str(blocks))
    of = f" of {max(found)} blocks" if most < max(found) else " blocks, the deepest tried"
    at_each = "; ".join(f"{listed(blocks)} blocks: {words}" for words, blocks in ran.items())
    rates_tried = at_each if len(ran) > 1 else next(iter(ran))
    falls = " and ".join(f"with {listed(blocks)} blocks at {at}" for at, blocks in fell.items())
    return f"up to {most}{of} ({rates_tried}){', still falling ' * bool(falls)}{falls}"


def depth(scheme: str) -> Finding | None:
    """The deepest stack that trains at some of the rates tried, in each setting that was run."""
    parts, where, shared = [], "", ""
    for key in ("torch", MAP):
        if (most := deepest(key, scheme)) is None:
            continue
        found, init = by_depth(key, scheme), INITS.label(standard(key).grid.base.init)
        parts.append(f"{init} initialisation: {reach(key, scheme)}")
        where, shared = map_address(found[most].map if most else key), conditions(key, init=False)
    return Finding(f"{'; '.join(parts)} ({shared})", where) if parts else None


def initialisation(scheme: str) -> Finding | None:
    """The initialisations with which it trains, by depth, at the rate of that map."""
    grid = standard("init").grid
    depths, inits = grid.axis("depth"), grid.axis("init")
    assert depths is not None
    assert inits is not None
    most = []
    for init in inits.values:
        measurements = [measured("init", scheme, depth=d, init=init) for d in depths.values]
        if None in measurements:
            return None
        good = [
            d
            for d, measurement in zip(depths.values, measurements, strict=True)
            if measurement is not None and measurement.trained
        ]
        most.append(f"{INITS.label(init)} {max(good, default=0)}")
    return Finding(
        f"deepest that trains at rate {grid.base.lr:g}, of up to {depths.values[-1]} blocks: "
        f"{', '.join(most)} ({conditions('init')})",
        map_address("init"),
    )


@dataclass(frozen=True)
class Property:
    """A column: the claims about each placement, and the function that reads what was measured."""

    key: str
    label: str
    measure: Callable[[str], Finding | None]
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


PROPERTIES: Registry[Property] = Registry(
    "property",
    (
        Property("gradient", "Gradient path", path, {
            "pre": ("C3", "E8"), "post": ("C4",), "resp": ("C17",),
        }),
        Property("stability", "Stability", _of(rates), {
            "pre": ("E4", "C15"), "post": ("E4",), "peri": ("C16",), "resp": ("C17",),
            "deepnorm": ("C6",),
        }),
        Property("warmup", "Warm-up", warm_up, {"pre": ("C5",), "post": ("C5", "E1")}),
        Property("quality", "Final quality", _of(loss), {
            "pre": ("E7",), "post": ("E7",), "peri": ("C16",), "deepnorm": ("E18",),
        }),
        Property("depth", "Depth", depth, {
            "pre": ("E2",), "post": ("E2",), "deepnorm": ("E3",),
        }),
        Property("scale", "Output scale", _of(stream), {
            "pre": ("C2", "C11"), "peri": ("C16",),
        }),
        Property("init", "Sensitivity to initialisation", initialisation, {
            "pre": ("E5",), "post": ("E5",),
        }),
        Property("compute", "Compute", cost, {"pre": ("E15",), "post": ("E15",)}),
        Property("users", "Users", used),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class TableCell:
    """One cell: claims with verdicts, and what was measured, or None."""

    claims: tuple[ClaimLine, ...]
    measured: Finding | None


def table() -> dict[str, dict[str, TableCell]]:
    """The cells by placement and property."""
    return {
        scheme: {
            column.key: TableCell(
                tuple(claim_line(key) for key in column.claims.get(scheme, ())),
                column.measure(scheme),
            )
            for column in PROPERTIES
        }
        for scheme in ROWS
    }


def claims_about(scheme: str) -> tuple[ClaimLine, ...]:
    """All claims of a placement's row, each once."""
    keys = dict.fromkeys(key for column in PROPERTIES for key in column.claims.get(scheme, ()))
    return tuple(claim_line(key) for key in keys)
