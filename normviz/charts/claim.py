"""The figure of a claim: a point a seed, a line through the medians, and theory as dashed lines."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import median
from typing import Any

import altair as alt
from altair.utils.schemapi import UndefinedType

from normviz.catalog import PLACEMENTS
from normviz.formats import number
from normviz.runs.statistics import Interval

from .base import TEXT_SIZE, Rows, Spec, filled, named
from .palette import ink, lane_styles, scheme_style

HEIGHT = 280
FEW = 12
"""Values of x up to which each is a tick of its own."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
ROW = 42
"""Pixels of a row with numbers side by side."""
ASIDE = 1.08
"""The factor of x, on a log axis, by which the next kind of a scatter's points stands aside."""
NEUTRAL = "#8a5cc2"
"""The colour of a strip's row that names no placement."""
OUTCOMES = {"trains": "#3b7dd8", "does not train": "#d1642e"}
"""The colours of a scatter's points."""


@dataclass(frozen=True)
class Points:
    """One arm: for each x the numbers of all seeds. `scheme` gives its colour, "" a neutral one. Of a
    scatter each x is one run's, and `trains` says whether it trained. `links` has for each y the query
    string of the duel that shows it, "" for none. Of a row of a strip `bounds` is the 95 % interval of the
    mean, None where there is none. Arms of a scatter of one `kind` have one shape; "" for all alike."""

    label: str
    scheme: str
    x: tuple[float, ...]
    y: tuple[tuple[float, ...], ...]
    trains: tuple[bool, ...] = ()
    links: tuple[tuple[str, ...], ...] = ()
    bounds: Interval | None = None
    kind: str = ""


@dataclass(frozen=True)
class Line:
    """A closed form as (x, y), with its name and assumptions."""

    label: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Figure:
    """What a claim shows. As a strip each series is one row of numbers, and there is no x; as a scatter
    each point is a run, and its colour says whether it trained."""

    points: tuple[Points, ...]
    x: str
    y: str
    log_x: bool
    log_y: bool
    lines: tuple[Line, ...] = ()
    is_strip: bool = False
    is_scatter: bool = False


def chart(figure: Figure, dark: bool = False) -> Spec:
    """The figure as a Vega-Lite dict with its rows."""
    if figure.is_scatter:
        return _scatter(figure, dark)
    return _strip(figure, dark) if figure.is_strip else _curves(figure, dark)


def _curves(figure: Figure, dark: bool) -> Spec:
    styles = lane_styles(tuple(arm.scheme or arm.label for arm in figure.points))
    labels = [arm.label for arm in figure.points]
    legend = alt.Legend(
        title=None, orient="top", labelFontSize=TEXT_SIZE, labelLimit=300,
        columns=alt.ExprRef("width < 480 ? 1 : 2"),
    )  # fmt: skip
    color = alt.Color(
        "arm:N",
        scale=alt.Scale(domain=labels, range=[style.color for style in styles]),
        legend=legend,
    )
    # Arms of one placement have shades of its colour, so shapes and dashes tell them apart as well.
    shape = alt.Shape(
        "arm:N", scale=alt.Scale(domain=labels, range=SHAPES[: len(labels)]), legend=legend
    )
    dash = [list(style.dash) or [1, 0] for style in styles]
    dashed = alt.StrokeDash("arm:N", scale=alt.Scale(domain=labels, range=dash), legend=None)
    x = alt.X("x:Q", scale=_scale(figure.log_x, nice=False), axis=_x_axis(figure))
    y = alt.Y("y:Q", scale=_scale(figure.log_y), axis=alt.Axis(title=figure.y, format=".4~g"))
    tooltips = [alt.Tooltip(field) for field in ("arm:N", "x:Q", "y:Q", "seed:Q")]
    layers = [
        named("medians").mark_line(strokeWidth=2).encode(x=x, y=y, color=color, strokeDash=dashed),
        named("seeds")
        .mark_point(size=26, filled=True, opacity=0.75)
        .encode(x=x, y=y, color=color, shape=shape, tooltip=tooltips, href=_link_field(figure)),
    ]
    if figure.lines:
        layers.insert(0, _theory_layer(x, y, dark))
    apart = alt.layer(*layers).resolve_scale(strokeDash="independent")
    spec = apart.properties(height=HEIGHT).to_dict()
    sets = {"seeds": rows(figure), "medians": _medians(figure), "theory": _theory(figure)}
    return filled(spec, sets)


def _theory_layer(x: alt.X, y: alt.Y, dark: bool) -> alt.Chart:
    """The closed forms as dashed lines with a legend of their own."""
    theory = alt.StrokeDash(
        "line:N",
        scale=alt.Scale(range=[[6, 3], [2, 2], [10, 3, 2, 3]]),
        legend=alt.Legend(
            title=None, orient="bottom", direction="vertical", labelLimit=620,
            symbolType="stroke", symbolSize=400, labelFontSize=TEXT_SIZE,
        ),
    )  # fmt: skip
    line = named("theory").mark_line(strokeWidth=1.6, color=ink(dark))
    return line.encode(x=x, y=y, strokeDash=theory)


def _scatter(figure: Figure, dark: bool) -> Spec:
    scale, axis = _scale(figure.log_x, nice=False), _x_axis(figure)
    x = alt.X("x:Q", scale=scale, axis=axis)
    y = alt.Y("y:Q", scale=_scale(figure.log_y), axis=alt.Axis(title=figure.y, format=".4~g"))
    names, (good, bad) = list(OUTCOMES), OUTCOMES.values()
    legend = alt.Legend(title=None, orient="top", labelFontSize=TEXT_SIZE)
    color = alt.Color("trains:N", scale=alt.Scale(domain=names, range=[good, bad]), legend=legend)
    kinds = list(dict.fromkeys(arm.kind for arm in figure.points if arm.kind))
    by, values, shapes = (
        ("kind", kinds, SHAPES) if kinds else ("trains", names, ("circle", "cross"))
    )
    shape = alt.Shape(
        f"{by}:N", scale=alt.Scale(domain=values, range=shapes[: len(values)]), legend=legend
    )
    tooltips = [alt.Tooltip(field) for field in ("arm:N", "x:Q", "y:Q", "trains:N")]
    # Kinds stand side by side, as one would hide the other where they have the same numbers.
    column = alt.X("column:Q", scale=scale, axis=axis) if kinds else x
    dots = (
        named("seeds")
        .mark_point(size=42, filled=True, opacity=0.6)
        .encode(x=column, y=y, color=color, shape=shape, tooltip=tooltips, href=_link_field(figure))
    )
    layers = [*([_theory_layer(x, y, dark)] if figure.lines else []), dots]
    spec = alt.layer(*layers).properties(height=HEIGHT).to_dict()
    sets = {"seeds": rows(figure), "theory": _theory(figure)}
    return filled(spec, sets)


def row_color(row: Points) -> str:
    """The colour of the placement that a strip's row names in its label, the longest if it names several."""
    named = [scheme.key for scheme in PLACEMENTS if scheme.label in row.label]
    longest = max(named, key=lambda key: len(PLACEMENTS.label(key)), default="")
    return scheme_style(longest).color if longest else NEUTRAL


def _strip(figure: Figure, dark: bool) -> Spec:
    colors = [row_color(arm) for arm in figure.points]
    figure = _shortened(figure)
    color = alt.Color(
        "arm:N",
        scale=alt.Scale(domain=[arm.label for arm in figure.points], range=colors),
        legend=None,
    )
    # Names stand above their rows, so that the numbers have the whole width of a phone.
    above = alt.Axis(
        title=None, labelFontSize=TEXT_SIZE, labelAlign="left", labelPadding=-2, labelOffset=-17,
        labelLimit=alt.ExprRef("width"), ticks=False, domain=False, grid=True,
    )  # fmt: skip
    y = alt.Y("arm:N", sort=[arm.label for arm in figure.points], axis=above)
    x = alt.X("y:Q", scale=_scale(figure.log_y), axis=alt.Axis(title=figure.y, format=".4~g"))
    tick = named("medians").mark_tick(thickness=2.5, size=16, color=ink(dark)).encode(x=x, y=y)
    tooltips = [alt.Tooltip(field) for field in ("arm:N", "low:Q", "high:Q")]
    bars = (
        named("intervals")
        .mark_rule(strokeWidth=3, opacity=0.35, color=ink(dark))
        .encode(x=alt.X("low:Q", title=figure.y), x2="high:Q", y=y, tooltip=tooltips)
    )
    dots = (
        named("seeds")
        .mark_point(size=42, filled=True, opacity=0.7)
        .encode(
            x=x,
            y=y,
            color=color,
            tooltip=[alt.Tooltip(field) for field in ("arm:N", "y:Q", "seed:Q")],
            href=_link_field(figure),
        )
    )
    spec = alt.layer(bars, dots, tick).properties(height=max(90, ROW * len(figure.points)))
    spec = spec.to_dict()
    sets = {"intervals": intervals(figure), "seeds": rows(figure), "medians": _medians(figure)}
    return filled(spec, sets)


def _shortened(figure: Figure) -> Figure:
    """The rows without the words that all begin with, where the axis has them: "final loss, Post-LN" is
    Post-LN."""
    every = [arm.label.split(", ") for arm in figure.points]
    heads = zip(*(parts[:-1] for parts in every), strict=False)
    shared = [words[0] for words in takewhile(lambda words: len(set(words)) == 1, heads)]
    axis = figure.y.partition(" (")[0]
    if not shared or not (axis.startswith(shared[0]) or shared[0].startswith(axis)):
        return figure
    points = (
        replace(arm, label=", ".join(parts[len(shared) :]))
        for arm, parts in zip(figure.points, every, strict=True)
    )
    return replace(figure, points=tuple(points))


def has_links(figure: Figure) -> bool:
    """Whether its points open duels."""
    return any(arm.links for arm in figure.points)


def _link_field(figure: Figure) -> alt.Href | UndefinedType:
    return alt.Href("link:N") if has_links(figure) else alt.Undefined


def _x_axis(figure: Figure) -> alt.Axis:
    """With the values that were run as its ticks, where they are few."""
    values = sorted({x for arm in figure.points for x in arm.x})
    ticks: dict[str, Any] = (
        {"values": values, "labelOverlap": "greedy"} if len(values) <= FEW else {}
    )
    form = "d" if all(float(x).is_integer() for x in values) else ".4~g"
    return alt.Axis(title=figure.x, grid=False, format=form, **ticks)


def _scale(log: bool, nice: bool = True) -> alt.Scale:
    if log:
        return alt.Scale(type="log", nice=False, padding=12)
    return alt.Scale(zero=False, nice=nice, padding=12)


def rows(figure: Figure) -> Rows:
    """The figure's points that its axes can show: arm, x, y, and seed, or in a scatter whether it trains."""
    if figure.is_scatter:
        return _runs(figure)
    return [
        {"arm": arm.label, "x": x, "y": y, "seed": seed, **_link(arm, k, seed)}
        for arm in figure.points
        for k, (x, ys) in enumerate(zip(arm.x, arm.y, strict=True))
        for seed, y in enumerate(ys)
        if _drawable(y, figure.log_y)
    ]


def _link(arm: Points, k: int, of: int) -> dict[str, str]:
    """The address of a point's duel, beside the page that shows the figure."""
    link = arm.links[k][of] if arm.links else ""
    return {"link": f"./?{link}"} if link else {}


def _runs(figure: Figure) -> Rows:
    """The points of a scatter; those that do not train last, which puts them on top."""
    trained, failed = OUTCOMES
    kinds = list(dict.fromkeys(arm.kind for arm in figure.points))
    points: Rows = [
        {
            "arm": arm.label,
            "x": x,
            "y": y,
            "trains": trained if good else failed,
            **(
                {"kind": arm.kind, "column": x * ASIDE ** kinds.index(arm.kind)} if arm.kind else {}
            ),
            **_link(arm, k, 0),
        }
        for arm in figure.points
        for k, (x, (y,), good) in enumerate(zip(arm.x, arm.y, arm.trains, strict=True))
        if _drawable(x, figure.log_x) and _drawable(y, figure.log_y)
    ]
    return sorted(points, key=lambda row: row["trains"] == failed)


def _medians(figure: Figure) -> Rows:
    middles: Rows = []
    for arm in figure.points:
        for x, ys in zip(arm.x, arm.y, strict=True):
            middle = median(ys) if not any(map(math.isnan, ys)) else math.nan
            if _drawable(middle, figure.log_y):
                middles.append({"arm": arm.label, "x": x, "y": middle})
    return middles


def intervals(figure: Figure) -> Rows:
    """Of each row of a strip its 95 % interval, of those that have one."""
    return [
        {"arm": arm.label, "low": arm.bounds.low, "high": arm.bounds.high}
        for arm in figure.points
        if arm.bounds
    ]


def _theory(figure: Figure) -> Rows:
    return [
        {"line": line.label, "x": x, "y": y}
        for line in figure.lines
        for x, y in line.points
        if _drawable(y, figure.log_y)
    ]


def _drawable(y: Any, log: bool) -> bool:
    return math.isfinite(y) and (y > 0 or not log)


def finding(figure: Figure) -> str:
    """The figure in words: of each arm the first and the last median."""
    if figure.is_scatter:
        ends = [good for arm in figure.points for good in arm.trains]
        return f"{figure.y} over {figure.x}. {sum(ends)} of {len(ends)} runs train."
    parts = []
    for arm in figure.points:
        middles = [median(ys) for ys in arm.y]
        if figure.is_strip or len(middles) == 1:
            parts.append(f"{arm.label}: {number(middles[0])}")
        else:
            ends = f"{number(middles[0])} at {arm.x[0]:g} to {number(middles[-1])} at {arm.x[-1]:g}"
            parts.append(f"{arm.label} from {ends}")
    over = f" over {figure.x}" if figure.x else ""
    return f"{figure.y}{over}. {'; '.join(parts)}."
