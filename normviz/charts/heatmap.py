"""The value of every layer at every step of one lane, on a colour scale that all lanes share.

The lowest layer is at the bottom. Steps not run yet are transparent, and so are steps that no record holds
for. Numbers that are not finite are red, zero is grey, and the legend says so where values lie beyond the
scale.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from normviz.catalog.probes import PROBES, ProbeRecord
from normviz.formats import number
from normviz.runs import Recording
from normviz.runs.lane import Lane, diverged

from .base import (
    TEXT_SIZE,
    Rows,
    Spec,
    compiled,
    halo,
    named,
    step_axis,
    tick_label,
    value_scale,
)
from .palette import (
    BROKEN,
    DIVERGING,
    EMPTY,
    LEVELS,
    LOWEST,
    PALETTE,
    RAMP_SCHEME,
    RED,
    ZERO,
    LaneStyle,
    ink,
    paper,
)
from .png import data_uri, png
from .scale import Domain

MOST_COLUMNS = MOST_ROWS = 256


def fixed(lane: Lane) -> dict[str, Rows]:
    """The datasets that the cursor does not change, as rows of JSON."""
    return {"bad": _bad_rows(lane.recording)}


def rows(lane: Lane, probe: str, domain: Domain) -> dict[str, Rows]:
    """The datasets of a finished lane, with its picture as the player paints it."""
    picture = png(codes(lane, probe, domain), PALETTE)
    return {"picture": [{"url": data_uri(picture)}], "cursor": [], "ahead": []}


def codes(lane: Lane, probe: str, domain: Domain) -> NDArray[np.uint8]:
    """[rows, columns] palette codes of a finished lane, the last layer on top, as `cells` of the player
    has them."""
    run, layers = lane.recording, lane.recording.layers(probe)
    values, until = layers.drawn, layers.held_until
    height = run.depth + 1 - PROBES[probe].first_layer
    columns, per = grid(run.total, MOST_COLUMNS)
    cells, each = grid(height, MOST_ROWS)
    palette_codes = np.full((cells, columns), EMPTY, np.uint8)
    with np.errstate(invalid="ignore"):
        scaled = LOWEST + np.floor(domain.place(values) * (LEVELS - 1) + 0.5)
    coded = np.where(np.isfinite(values), np.where(domain.zero(values), ZERO, scaled), BROKEN)
    tops = np.minimum((np.arange(cells) + 1) * each, height) - 1
    for c in range(columns):
        at = min((c + 1) * per, run.total) - 1
        record = int(np.searchsorted(layers.step, at, side="right")) - 1
        if record >= 0 and until[record] > c * per:
            palette_codes[:, c] = coded[record, tops]
    for i, k in np.argwhere(~np.isfinite(values)):
        palette_codes[k // each, layers.step[i] // per] = BROKEN
    return palette_codes[::-1]


def _bad_rows(run: Recording) -> Rows:
    """Where the run diverged, and the words beside it (at the top if unknown)."""
    bad = run.bad
    if bad is None:
        return []
    step, layer = bad
    where = "" if layer is None else f", {run.row} {layer}"
    side = "left" if step < run.total * 0.6 else "right"
    return [
        {
            "step": step,
            "layer": run.depth if layer is None else layer,
            "text": f"diverged: step {step}{where}",
            "side": side,
        }
    ]


def spec(
    style: LaneStyle,
    label: str,
    probe: str,
    depth: int,
    steps: int,
    domain: Domain,
    dark: bool = False,
    comparing: bool = False,
    row: str = "layer",
    has_gaps: bool = False,
) -> Spec:
    """Vega-Lite dict of a heatmap without its data.

    `comparing` is for quotients of two lanes: its colours part at 1. `row` names a row: layer or time step.
    `has_gaps` says that between the columns are steps that were not recorded.
    """
    record = PROBES[probe]
    title = {
        "text": " ".join(label.split()),
        "subtitle": _subtitle(record, domain, comparing, has_gaps),
        "color": style.color,
        "subtitleColor": ink(dark),
        "subtitleFontSize": TEXT_SIZE,
        "fontSize": 14,
        "offset": 8,
        "anchor": "start",
    }
    plot = _plot(record.first_layer, depth, steps, domain, dark, comparing, row)
    return {**plot, "title": title}


@lru_cache(maxsize=128)
def _plot(
    first: int, depth: int, steps: int, domain: Domain, dark: bool, comparing: bool, row: str
) -> Spec:
    """The chart without its title: the same for all lanes of these axes, because it takes long to compile."""
    columns, per_column = grid(steps, MOST_COLUMNS)
    cells, per_row = grid(depth + 1 - first, MOST_ROWS)
    x = step_axis(columns * per_column)
    y = _layer_axis(first, depth, cells * per_row, row)
    height = min(300, max(120, 11 * cells))
    layers = [
        _picture(),
        named("ahead").mark_rect(color=paper(dark), opacity=0.6).encode(x=x, x2=alt.X2("end:Q")),
        _legend(comparing, domain, height),
        named("cursor").mark_rule(strokeWidth=4, color=paper(dark), opacity=0.7).encode(x=x),
        named("cursor").mark_rule(strokeWidth=1.5, color=ink(dark)).encode(x=x),
        *_bad(x, y, dark),
    ]
    return compiled(layers, height)


def grid(size: int, most: int) -> tuple[int, int]:
    """(cells, steps or layers per cell) to show `size` of them in at most `most` cells."""
    per = max(1, -(-size // most))
    return -(-size // per), per


def _subtitle(record: ProbeRecord, domain: Domain, comparing: bool, has_gaps: bool) -> str:
    """What is drawn, and what empty columns and the colours outside the scale mean, where they occur."""
    notes = [record.axis_label]
    if comparing:
        notes = [f"{record.title}, quotient: blue where the first is larger, orange the second"]
    if domain.zeros:
        notes.append("grey: 0, or lost in rounding" if record.rounds_with else "grey: 0")
    if domain.broken:
        notes.append("red: not finite")
    if has_gaps:
        notes.append("empty: not recorded")
    return " · ".join(notes)


def _layer_axis(first: int, depth: int, layers: int, row: str) -> alt.Y:
    stride = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**6) if depth / s <= 8)
    inner = [v for v in range(stride, depth, stride) if v != first and depth - v >= stride / 2]
    return alt.Y(
        "layer:Q",
        scale=alt.Scale(domain=[first - 0.5, first - 0.5 + layers], nice=False, zero=False),
        axis=alt.Axis(title=row, grid=False, format="d", values=[first, *inner, depth]),
    )


def _picture() -> alt.Chart:
    """The whole matrix in one image, stretched over the plot without blurring its cells."""
    return (
        named("picture")
        .mark_image(
            aspect=False,
            smooth=False,
            align="left",
            baseline="top",
            width=alt.ExprRef("width"),
            height=alt.ExprRef("height"),
        )
        .encode(x=alt.XValue(0), y=alt.YValue(0), url=alt.Url("url:N"))
    )


def _legend(comparing: bool, domain: Domain, height: int) -> alt.Chart:
    """An invisible mark that carries the scale whose colours the picture is drawn in."""
    scale = value_scale(domain)
    if comparing:
        scale.domain, scale.range, scale.interpolate = (
            [domain.lo, 1, domain.hi],
            [*DIVERGING],
            "rgb",
        )
    else:
        scale.scheme = RAMP_SCHEME
    legend = alt.Legend(
        title=None,
        orient="right",
        gradientLength=height,
        gradientThickness=12,
        values=domain.ticks(),
        labelExpr=tick_label(domain),
        offset=8,
        padding=0,
    )
    return (
        named("cursor")
        .mark_point(opacity=0, size=1)
        .encode(
            x=alt.XValue(0), y=alt.YValue(0), color=alt.Color("step:Q", scale=scale, legend=legend)
        )
    )


def _bad(x: alt.X, y: alt.Y, dark: bool) -> list[alt.Chart]:
    """A red cross where the lane diverged, and its step and layer in words on the emptier side."""
    at = named("bad").encode(x=x, y=y)
    shape = {"shape": "cross", "angle": 45, "filled": True, "opacity": 1}
    marks = [
        at.mark_point(**shape, size=150, color=paper(dark)),
        at.mark_point(**shape, size=80, color=RED),
    ]
    for side, dx in (("left", 10), ("right", -10)):
        words = at.transform_filter(alt.datum.side == side).encode(text=alt.Text("text:N"))
        place = dict[str, Any](align=side, baseline="middle", dx=dx, fontSize=TEXT_SIZE)
        marks += [
            words.mark_text(**place, **halo(paper(dark))),
            words.mark_text(**place, color=RED),
        ]
    return marks


def finding(lane: Lane, probe: str) -> str:
    """What the heatmap shows: the lane's extremes, where they are, and its divergence."""
    run, record, layers = lane.recording, PROBES[probe], lane.recording.layers(probe)
    values, first = layers.drawn, record.first_layer
    if not np.isfinite(values).any():
        return f"{lane.title}: nothing finite has been recorded yet."
    parts = []
    for which, at in (("lowest", np.nanargmin), ("highest", np.nanargmax)):
        finite = np.where(np.isfinite(values), values, np.nan)
        row, column = np.unravel_index(at(finite), values.shape)
        where = f"{run.row} {column + first}, step {layers.step[row]}"
        parts.append(f"{which} {number(values[row, column])} ({where})")
    end = diverged(lane)
    few = f"{len(layers.step)} of the " if layers.has_gaps else ""
    return (
        f"{lane.title}, {record.axis_label}, {run.row}s {first} to {run.depth}, {few}steps 0 to "
        f"{layers.step[-1]}: {', '.join(parts)}." + (f" The lane {end}." if end else "")
    )
