"""Where it trains: a map of final losses over two settings, several maps on one colour scale.

Losses are capped at chance, so the colours show which cells learned and not how badly the others failed. A
red cross is divergence, a triangle a cell whose loss still fell at the last step. The line is the frontier,
the largest value of the second setting that trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt

from .base import CANVAS, CONFIG, FIT, TEXT_SIZE, Rows, Spec, js, named, unchecked
from .palette import RAMP_SCHEME, RAMP_STOPS, RED, ink, paper

CELL = 46, 36
"""Pixels of a cell, across and upwards: three maps stand on the first screen of a laptop."""
SHORT = 3
"""Characters of a label that fits below the narrowest cell."""
PER_ROW = 3
PICK = "pick"
Domain = tuple[float, float]
UNKNOWN: Domain = (0.0, 1.0)
"""The domain of maps without a result, which get no legend."""
EMPTY = {False: "#eceef1", True: "#2b2a28"}
"""Colour of a cell that has not run yet, by whether the page is dark."""
MARKS = {"diverged": "cross", "falling": "triangle-down"}


@dataclass(frozen=True)
class MapCell:
    """A cell: its column and row from 0, its loss capped at chance, and what to mark it with.

    loss     None where it has not run yet
    mark     diverged, falling, running (it is being trained), or nothing
    where    its settings in words
    words    what came of it, shown where the pointer is
    key      name of its run
    curve    address of a small picture of its losses, or nothing
    """

    column: int
    row: int
    loss: float | None
    mark: str
    where: str
    words: str
    key: str
    curve: str = ""


@dataclass(frozen=True)
class Map:
    """One map. `x` and `y` name the settings, `columns` and `rows` their values as people read them.

    frontier  for each column the last row that trains, None where none does; empty for no line. A column
              without a result has no line
    chance    loss of the best guess that ignores the context; None before a cell has ended
    floor     lowest reachable loss where it is known, else a little below the lowest there is
    """

    title: str
    x: str
    y: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[MapCell, ...]
    frontier: tuple[int | None, ...]
    chance: float | None
    floor: float | None
    note: str = ""


def chart(maps: Sequence[Map], dark: bool = False) -> Spec:
    """All maps beside and below each other, with their rows. Raises ValueError for none."""
    if not maps:
        raise ValueError("there is no map to draw")
    domain = colours(maps)
    sets = {
        name: rows for i, panel in enumerate(maps) for name, rows in _rows(panel, i, domain).items()
    }
    parts = [_panel(panel, i, domain, dark) for i, panel in enumerate(maps)]
    whole = parts[0] if len(parts) == 1 else alt.concat(*parts, columns=PER_ROW, spacing=24)
    spec = whole.to_dict()
    return {**spec, "config": CONFIG, "usermeta": CANVAS, "datasets": sets}


def live(panel: Map, i: int, domain: Domain, dark: bool = False) -> Spec:
    """Map `i` of a page, as wide as its place: its cells tell their curve at the pointer,
    and a click is the selection PICK of a cell's key. The spec stays the same while the map fills, whatever
    its losses are: what colours they have is said by `legend`."""
    seeds = panel.note.partition(" · ")[0]  # the page explains the marks in words of its own
    spec = _live(panel.title, seeds, panel.x, panel.y, panel.columns, panel.rows, i, dark)
    return {**spec, "datasets": _rows(panel, i, domain)}


@lru_cache(maxsize=256)
@unchecked
def _live(
    title: str,
    note: str,
    x: str,
    y: str,
    columns: tuple[str, ...],
    rows: tuple[str, ...],
    i: int,
    dark: bool,
) -> Spec:
    """The spec of a map of a page, without its rows."""
    empty = Map(title, x, y, columns, rows, (), (), None, None, note)
    spec = _panel(empty, i, UNKNOWN, dark, is_live=True).to_dict()
    del spec["width"]
    return {**spec, "autosize": FIT, "config": CONFIG, "usermeta": CANVAS}


def legend(domain: Domain) -> str:
    """What the colours of a page's maps mean, as HTML of one line."""
    low, high = (f"{loss:.2f}" for loss in domain)
    stops = ", ".join(RAMP_STOPS)
    return (
        f'<span class="map-legend">{low} <i style="background: linear-gradient(to left, {stops})"></i> '
        f"{high} nats, brighter is lower</span>"
    )


def colours(maps: Sequence[Map]) -> Domain:
    """The losses at both ends of the colours that all maps share."""
    floors = [panel.floor for panel in maps if panel.floor is not None]
    chances = [panel.chance for panel in maps if panel.chance is not None]
    return (min(floors, default=UNKNOWN[0]), max(chances)) if chances else UNKNOWN


def _rows(panel: Map, i: int, domain: Domain) -> dict[str, Rows]:
    """The datasets of map `i`. The shade of a cell is 0 at the lower end of the colours and 1 at the upper
    one."""
    low, high = domain
    cells = [
        {
            "left": cell.column - 0.5, "right": cell.column + 0.5, "x": cell.column,
            "low": cell.row - 0.5, "high": cell.row + 0.5, "y": cell.row,
            "there": cell.loss is not None, "loss": cell.loss or 0.0,
            "shade": ((cell.loss or 0.0) - low) / (high - low), "mark": cell.mark,
            "where": cell.where, "words": cell.words, "key": cell.key, "curve": cell.curve,
        }
        for cell in panel.cells
    ]  # fmt: skip
    line: Rows = []
    ran = _ran(panel)
    for column, row in enumerate(panel.frontier):
        edge = None if column not in ran else -0.5 if row is None else row + 0.5  # None: a gap
        line += [{"x": column - 0.5, "y": edge, "at": 2 * column}]
        line += [{"x": column + 0.5, "y": edge, "at": 2 * column + 1}]
    return {f"cells{i}": cells, f"frontier{i}": line}


def _ran(panel: Map) -> set[int]:
    """The columns that have a result."""
    return {cell.column for cell in panel.cells if cell.loss is not None}


def _panel(panel: Map, i: int, domain: Domain, dark: bool, is_live: bool = False) -> alt.LayerChart:
    x = alt.X("left:Q", scale=_scale(panel.columns), axis=_axis(panel.x, panel.columns))
    y = alt.Y("low:Q", scale=_scale(panel.rows), axis=_axis(panel.y, panel.rows))
    key = alt.Legend(
        title=["loss (nats), at most chance", "brighter is lower"], format=".2f",
        orient="bottom", direction="horizontal", gradientLength=180, titleLimit=260, gradientThickness=10,
    )  # fmt: skip
    color = alt.Color(
        "shade:Q" if is_live else "loss:Q",
        scale=alt.Scale(domain=list(domain), scheme=RAMP_SCHEME, reverse=True, clamp=True),
        legend=None if i or domain == UNKNOWN else key,
    )
    color = alt.condition("datum.there", color, alt.value(EMPTY[dark]))
    tooltips = [alt.Tooltip("where:N", title="title"), alt.Tooltip("words:N", title="result")]
    if is_live:
        tooltips.append(alt.Tooltip("curve:N", title="image"))
    squares = (
        named(f"cells{i}")
        .mark_rect(stroke=paper(dark), strokeWidth=1, cursor="pointer")
        .encode(x=x, x2=alt.X2("right:Q"), y=y, y2=alt.Y2("high:Q"), color=color, tooltip=tooltips)
    )
    if is_live:
        pick = alt.selection_point(name=PICK, fields=["key"], on="click", clear=False)
        squares = squares.add_params(pick)
    layers = [squares, *_marks(i, dark), *_frontier(i, dark)]
    title = alt.TitleParams(
        panel.title, subtitle=panel.note, color=ink(dark), subtitleColor=ink(dark),
        fontSize=14, subtitleFontSize=TEXT_SIZE, anchor="start", offset=8,
    )  # fmt: skip
    return alt.LayerChart(layer=layers).properties(
        width=CELL[0] * len(panel.columns), height=CELL[1] * len(panel.rows), title=title
    )


def _scale(values: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=[-0.5, len(values) - 0.5], nice=False, zero=False)


def _axis(title: str, values: Sequence[str]) -> alt.Axis:
    """Ticks at whole numbers, with the settings' values for words."""
    words = f"{js(list(values))}[round(datum.value)]"
    # Vega would drop every second one of short labels, which fit.
    overlaps = alt.Undefined if max(map(len, values)) > SHORT else False
    return alt.Axis(
        title=title, values=list(range(len(values))), labelExpr=words, grid=False, labelAngle=0,
        labelOverlap=overlaps,
    )  # fmt: skip


def _marks(i: int, dark: bool) -> list[alt.Chart]:
    """One mark for each cell that has one, with a halo that separates it from any colour."""
    layers = []
    for mark, shape in MARKS.items():
        at = named(f"cells{i}").transform_filter(f"datum.mark == '{mark}'")
        halo: dict[str, Any]
        style: dict[str, Any] = {"shape": shape, "opacity": 1, "filled": True}
        if mark == "diverged":
            style |= {"size": 90, "angle": 45, "color": RED}
            halo = {**style, "size": 170, "color": paper(dark)}
        else:
            style |= {"size": 36, "color": "#1d1d1d", "strokeWidth": 2}
            halo = {**style, "size": 60, "color": "#ffffff", "opacity": 0.6}
        place = {"x": alt.X("x:Q"), "y": alt.Y("y:Q")}
        layers += [at.mark_point(**halo).encode(**place), at.mark_point(**style).encode(**place)]
    busy = named(f"cells{i}").transform_filter("datum.mark == 'running'")
    dots = busy.mark_text(text="•••", fontSize=11, color=ink(dark)).encode(
        x=alt.X("x:Q"), y=alt.Y("y:Q")
    )
    return [*layers, dots]


def _frontier(i: int, dark: bool) -> list[alt.Chart]:
    # Vega leaves space for the tips of sharp joins, so that maps beside each other would not be level.
    at = named(f"frontier{i}").encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), order=alt.Order("at:Q"))
    return [
        at.mark_line(strokeWidth=6, strokeJoin="round", color=paper(dark), opacity=0.8),
        at.mark_line(strokeWidth=2.5, strokeJoin="round", color=ink(dark)),
    ]


def finding(panel: Map) -> str:
    """What a map shows: how many of its cells came to what, and its frontier."""
    marks = [cell.mark for cell in panel.cells]
    todo = sum(cell.loss is None for cell in panel.cells)
    parts = [f"{len(marks)} cell{'s' * (len(marks) != 1)}"] + (
        [f"{todo} not run yet"] if todo else []
    )
    for mark, words in (("diverged", "diverged"), ("falling", "still falling")):
        if n := marks.count(mark):
            parts.append(f"{n} {words}")
    ran = _ran(panel)
    edges = [
        f"{panel.columns[i]}: {'none' if row is None else panel.rows[row]}"
        for i, row in enumerate(panel.frontier)
        if i in ran
    ]
    line = (
        f" Largest {panel.y} that trains in these steps by {panel.x}: {', '.join(edges)}."
        if edges
        else ""
    )
    return f"{panel.title}: {', '.join(parts)}.{line}"
