"""A figure for a paper: loss and one quantity in every layer side by side, as PDF or SVG. Torch-free."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any, Literal

from .. import charts
from ..catalog import PROBES
from ..charts.base import CONTAINER_WIDTH, TEXT_SIZE
from ..config import RunConfig, seeds_of
from ..runs.lane import Lane
from ..runs.names import with_names
from .pictures import whole
from .vega import part

Format = Literal["pdf", "svg"]
WIDTH, SIZE = 170.0, 8.0
"""Usual width in mm, of a page of two columns, and size of the words in points."""
POINTS = 72 / 25.4
"""Points a mm."""
GAP, LEAST = 16, 200
"""Pixels between the charts, and those that each needs at least."""
LETTER = 6.2
"""Pixels of a letter, about."""
ROOT = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"')


def figure(
    lanes: Sequence[Lane[Any]],
    kind: Format,
    probe: str = "grad_block",
    width: float = WIDTH,
    size: float = SIZE,
) -> bytes:
    """Both charts at the last step, `width` mm wide with words of `size` points. Below them stand the seeds
    and what the band is. Raises ValueError for a width in which the charts have no room."""
    points = size / TEXT_SIZE  # a pixel of a chart
    room = width * POINTS / points
    each = int(room - GAP) // 2
    if each < LEAST:
        least = (2 * LEAST + GAP) * points / POINTS
        raise ValueError(
            f"the width is {width:g} mm, allowed with words of {size:g} points is at least {least:.0f} mm"
        )
    # The words below name the seed, so the legend needs not.
    named = with_names([replace(lane, recordings=lane.recordings[:1]) for lane in lanes])
    several = [
        replace(alone, recordings=lane.recordings) for alone, lane in zip(named, lanes, strict=True)
    ]
    specs = (
        _noted(_loss(several), _seeds(lanes), each),
        _noted(_layers(named, probe), _of_layers(lanes), each),
    )
    drawn = [
        part(name, _sized(spec, each)) for name, spec in zip(("loss", "layers"), specs, strict=True)
    ]
    sizes = [tuple(map(float, found.groups())) for svg in drawn if (found := ROOT.search(svg))]
    high = max(height for _, height in sizes)
    unit = "" if kind == "pdf" else "pt"  # a PDF has a point for each unit
    parts = "".join(
        svg[svg.index("<svg") :].replace("<svg ", f'<svg x="{i * (each + GAP)}" ', 1)
        for i, svg in enumerate(drawn)
    )
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width * POINTS:.2f}{unit}" height="{high * points:.2f}{unit}" '
        f'viewBox="0 0 {room:.2f} {high:.2f}">{parts}</svg>'
    )
    if kind == "svg":
        return svg.encode()
    import vl_convert

    return vl_convert.svg_to_pdf(svg)


def _loss(lanes: Sequence[Lane[Any]]) -> dict[str, Any]:
    """The loss chart without a cursor."""
    spec = charts.loss.chart(lanes)
    return {**spec, "datasets": {**spec["datasets"], "cursor": []}}


def _layers(lanes: Sequence[Lane[Any]], probe: str) -> dict[str, Any]:
    """The quantity in every layer at the last record of each lane."""
    values = [lane.recording.layers(probe) for lane in lanes]
    domain = charts.quantised_domain(PROBES[probe], values)
    depth, labels = max(lane.recording.depth for lane in lanes), tuple(lane.label for lane in lanes)
    styles, row = charts.styles_of(lanes), lanes[0].recording.row
    spec = charts.layers.spec(styles, labels, probe, depth, domain, row=row)
    return {**spec, "datasets": charts.layers.rows_at(lanes, probe)}


def _sized(spec: dict[str, Any], width: int) -> dict[str, Any]:
    params = [
        {**param, "value": width} if param["name"] == CONTAINER_WIDTH else param
        for param in spec["params"]
    ]
    config = {**charts.theme(False), **spec["config"], "background": None}
    return {**whole({**spec, "params": params}, width), "config": config}


def _noted(spec: dict[str, Any], words: str, width: int) -> dict[str, Any]:
    """The chart with words below it."""
    title = {
        "text": wrap(words, int(width / LETTER)), "orient": "bottom", "anchor": "start",
        "fontSize": TEXT_SIZE, "fontWeight": "normal", "offset": 8,
    }  # fmt: skip
    return {**spec, "title": title}


def _seeds(lanes: Sequence[Lane[Any]]) -> str:
    """How many seeds each lane has, and what the lines and the band are."""
    counts = sorted({len(lane.recordings) for lane in lanes})
    if counts == [1]:
        return "1 seed each."
    number = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"{number} seeds each: line {_first(lanes)}, thin lines the others, band from lowest to highest."


def _of_layers(lanes: Sequence[Lane[Any]]) -> str:
    """Of which seed the layers are, where there are several."""
    if all(len(lane.recordings) == 1 for lane in lanes):
        return ""
    return f"Layers of {_first(lanes)}."


def _first(lanes: Sequence[Lane[Any]]) -> str:
    """The seed of the first lane's own run in words."""
    config = lanes[0].config
    if not isinstance(config, RunConfig) or not (config.init_seed or config.data_seed):
        return "seed 0"
    return seeds_of(config)
