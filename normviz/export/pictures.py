"""Any chart as PNG or SVG, drawn here by Vega itself: no browser, and no other host is asked.

The engine is loaded for the first picture, because it stays in memory from then on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from .vega import draw, draw_in_process

Spec = dict[str, Any]
Format = Literal["png", "svg"]
WIDTH = 720
"""Pixels of a chart that leaves its width to the page."""
GREY = "#5b606b"


class Chart(Protocol):
    """An Altair chart, as far as a picture needs it."""

    def to_dict(self) -> Spec:
        """The chart as Vega-Lite."""
        ...


def picture(
    chart: Spec | Chart,
    kind: Format,
    scale: float = 2.0,
    width: int = WIDTH,
    config: Spec | None = None,
    background: str | None = "white",
    in_process: bool = False,
) -> bytes:
    """A Vega-Lite chart as a picture; `scale` multiplies a PNG's pixels, `width` is in pixels.

    The chart may be an Altair chart or a spec with its datasets. `config` is a Vega-Lite config under the
    chart's own (`charts.theme`); `background` a colour, None for none; `in_process` draws in a process of its
    own. Raises ValueError for data that is not in the chart, wherever it lies.
    """
    if kind not in ("png", "svg"):
        raise ValueError(f"a picture is png or svg, not {kind!r}")
    spec = whole(chart if isinstance(chart, dict) else chart.to_dict(), width)
    merged = {**(config or {}), **spec.get("config", {}), "background": background}
    spec = {**spec, "config": merged, "background": background}
    return (draw_in_process if in_process else draw)(spec, kind, scale)


def captioned(spec: Spec, lines: Sequence[str]) -> Spec:
    """The chart with lines on its origin: under its title, or above the chart if it has none."""
    small = {"subtitleColor": GREY, "subtitleFontSize": 11, "anchor": "start"}
    if "title" not in spec:
        title = {"text": lines[0], "subtitle": list(lines[1:]), "offset": 12}
    else:
        title = spec["title"]
        own = title.get("subtitle", [])
        title = {**title, "subtitle": [*([own] if isinstance(own, str) else own), *lines]}
    return {**spec, "title": {**title, **small}}


def whole(spec: Spec, width: int = WIDTH) -> Spec:
    """The spec with every dataset it names inside, as JSON can hold it, and with a width."""
    sets = {name: _plain(rows) for name, rows in spec.get("datasets", {}).items()}
    for data in _data(spec):
        if "url" in data:
            raise ValueError(
                f"a picture can't fetch data from {data['url']!r}: put it into the chart"
            )
        name = data.get("name")
        if name is not None and "values" not in data and name not in sets:
            raise ValueError(f"the chart names the dataset {name!r}, which is not in it")
    own = {} if _has_width(spec) else {"width": width}
    return {**spec, **own, "datasets": sets}


def _data(part: Any) -> Iterator[Mapping[str, Any]]:
    """Every `data` of a spec and of the specs inside it."""
    if isinstance(part, list):
        for inner in part:
            yield from _data(inner)
    elif isinstance(part, dict):
        if isinstance(part.get("data"), dict):
            yield part["data"]
        for name, inner in part.items():
            if name not in ("data", "datasets"):
                yield from _data(inner)


def _has_width(spec: Spec) -> bool:
    """Whether it says how wide it is; charts side by side or below each other say so themselves."""
    inside = ("hconcat", "vconcat", "concat", "facet", "repeat", "spec")
    return spec.get("width", "container") != "container" or any(name in spec for name in inside)


def _plain(value: Any) -> Any:
    """A value of rows without numbers that are not finite: JSON has null."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
