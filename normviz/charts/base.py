"""What all charts share: how one is compiled, and the axes and words they have in common.

A chart is compiled once to a constant Vega-Lite dict that names its datasets but holds none. The
page's script, or `chart()`, adds the rows of the moment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from altair.utils.schemapi import debug_mode
from numpy.typing import NDArray

from .scale import Domain

Spec = dict[str, Any]
Rows = list[dict[str, Any]]
Column = NDArray[Any] | Sequence[str]
Columns = Mapping[str, Column]
"""Equally long columns by name."""
TEXT_SIZE = 12
# ARIA attributes on every mark cost most of the browser's time while a chart moves (the page gives
# the finding as alternative text instead). Without a pinned renderer, Streamlit would change to
# canvas, and so rebuild the chart, on crossing 2,000 rows.
CONFIG: Spec = {"aria": False, "view": {"stroke": None}}
# The page gives the width; the plot keeps its height whatever the legend above it needs.
FIT: Spec = {"type": "fit-x", "contains": "padding"}
CONTAINER_WIDTH = "container_width"
"""Signal of the pixels that a page gives to the chart; 0 in a picture. The plot's width is known only
after the legend is laid out."""
CANVAS: Spec = {"embedOptions": {"renderer": "canvas"}}
unchecked = debug_mode(False)
"""Decorates what makes a chart: Altair would check each of its parts against the schema, which takes half of
the time. `tests/charts` checks every chart."""


def theme(dark: bool) -> Spec:
    """Vega-Lite config: fonts and quiet axes, for the page's light or dark background."""
    words, lines = ("#c9ced6", "#33363d") if dark else ("#5b606b", "#e3e6ea")
    return {
        "background": None,
        "font": '"Source Sans", "Source Sans 3", "Segoe UI", system-ui, sans-serif',
        "axis": {
            "labelColor": words, "titleColor": words, "gridColor": lines, "domainColor": lines,
            "tickColor": lines, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal",
            "labelPadding": 6, "titlePadding": 10, "domain": False, "ticks": False,
        },
        "legend": {"labelColor": words, "titleColor": words, "labelFontSize": 13},
    }  # fmt: skip


def compiled(layers: Sequence[alt.Chart], height: int) -> Spec:
    """The layers as a Vega-Lite dict; `height` in pixels. A layer with parameters has a name.

    The same as `alt.layer(...).to_dict(validate=False)`, which takes three times as long because it copies
    each layer several times. Not checked against Altair's schema, which would double the time:
    `tests/charts` checks every chart.
    """
    parts = [layer.to_dict(validate=False, context={"top_level": False}) for layer in layers]
    shared = {}
    if all(part["data"] == parts[0]["data"] for part in parts):
        shared = {"data": parts[0]["data"]}
        parts = [{key: value for key, value in part.items() if key != "data"} for part in parts]
    lifted = [
        {**parameter, "views": [part["name"]]}
        for part in parts
        for parameter in part.pop("params", [])
    ]
    # Set here and not by alt.theme, which is global to all threads of the server.
    return {
        "config": CONFIG, **shared, "layer": parts, "height": height, "$schema": alt.SCHEMA_URL,
        "params": [*lifted, {"name": CONTAINER_WIDTH, "value": 0}], "autosize": FIT, "usermeta": CANVAS,
    }  # fmt: skip


def filled(spec: Spec, datasets: Mapping[str, Rows]) -> Spec:
    """A chart that Altair made, with its rows and as wide as its place."""
    return {**spec, "autosize": FIT, "config": CONFIG, "usermeta": CANVAS, "datasets": datasets}


def named(dataset: str) -> alt.Chart:
    """A chart whose rows come later, under this name."""
    return alt.Chart(alt.NamedData(name=dataset))


def step_axis(steps: int, title: str = "step", room: str = "0") -> alt.X:
    """The steps axis, fixed to the configured steps; each step is centred on its number.

    It ends `room` (a Vega expression, in pixels) before the plot does.
    """
    return alt.X(
        "step:Q",
        scale=alt.Scale(
            domain=[-0.5, max(steps, 1) - 0.5],
            range=alt.Undefined if room == "0" else [0, alt.ExprRef(f"width - {room}")],
            nice=False,
            zero=False,
        ),
        axis=alt.Axis(
            title=title,
            grid=False,
            format="d",
            tickMinStep=1,
            tickCount=alt.ExprRef("max(2, ceil(width / 90))"),
        ),
    )


def value_scale(domain: Domain) -> alt.Scale:
    """The scale of a probe's values, for an axis or (with a scheme) for colours."""
    ends = [domain.lo, domain.hi]
    if domain.scale == "log":
        return alt.Scale(type="log", domain=ends, nice=False)
    return alt.Scale(type="linear", domain=ends, nice=False, zero=False)


def tick_label(domain: Domain) -> str:
    """Vega expression that writes a tick: 1e-5 on log axes, with a sign where values lie beyond."""
    if domain.scale == "linear":
        return "format(datum.value, '.3~g')"
    plain = "replace(format(datum.value, '.0e'), '+', '')"
    low = f"datum.value < {domain.lo * 1.01} ? '≤' + {plain} : " if domain.below else ""
    high = f"datum.value > {domain.hi * 0.99} ? '≥' + {plain} : " if domain.above else ""
    return low + high + plain


FINITE = "isNumber(datum.value) && isFinite(datum.value)"
"""Vega expression: whether a row has a value to draw. JSON has null where it is not finite."""


def on_axis(log: bool) -> str:
    """Vega expression: whether a row's value has a place on the axis. A log axis has none for zero."""
    return f"{FINITE} && datum.value > 0" if log else FINITE


def js(value: object) -> str:
    """A Python value as a literal in a Vega expression."""
    return json.dumps(value, ensure_ascii=False)


def halo(color: str) -> dict[str, Any]:
    """Mark properties that put a border of the page's colour round words."""
    return {"stroke": color, "strokeWidth": 4, "strokeJoin": "round", "strokeOpacity": 0.85}


def rows(columns: Columns) -> Rows:
    """One JSON object a row; a number that is not finite becomes null, which JSON can hold."""
    lists = [_plain(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _plain(column: Column) -> list[Any]:
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind != "f":
        return column.tolist()
    return [v if ok else None for v, ok in zip(column.tolist(), np.isfinite(column), strict=True)]
