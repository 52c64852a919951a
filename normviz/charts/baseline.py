"""The same numbers as charts that anybody would write first: the measure of the live page's.

Each is rebuilt at every tick, with its rows inside and a mark for every cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from normviz.runs.frames import LaneFrame

from .scale import probe_of, shown


def loss(lanes: Sequence[LaneFrame], steps: int) -> alt.Chart:
    """Loss curves of the first `steps` steps."""
    tables = [
        pd.DataFrame({"step": np.arange(n), "loss": lane.loss[:n], "lane": lane.label})
        for lane in lanes
        if (n := min(steps, len(lane.loss)))
    ]
    base = alt.Chart(pd.concat(tables)).mark_line()
    return base.encode(x="step", y=alt.Y("loss", scale=alt.Scale(type="log")), color="lane")


def bars(lanes: Sequence[LaneFrame], steps: int) -> alt.Chart:
    """The last record before `steps`, layer by layer."""
    table = pd.concat([_cells(lane, steps).query("step == step.max()") for lane in lanes])
    y = alt.Y("value", scale=alt.Scale(type="log"))
    return alt.Chart(table).mark_point().encode(x="layer:O", xOffset="lane", y=y, color="lane")


def heatmap(lane: LaneFrame, steps: int) -> alt.Chart:
    """A rectangle for every layer and record before `steps`."""
    color = alt.Color("value", scale=alt.Scale(type="log", scheme="viridis"))
    rects = alt.Chart(_cells(lane, steps)).mark_rect()
    return rects.encode(x="step:O", y=alt.Y("layer:O", sort="descending"), color=color)


def _cells(lane: LaneFrame, steps: int) -> pd.DataFrame:
    at = lane.probe_steps[lane.probe_steps < steps]
    values, first = shown(lane)[: len(at)], probe_of(lane).first_layer
    layers = np.arange(first, lane.depth + 1)
    return pd.DataFrame(
        {
            "step": np.repeat(at, len(layers)),
            "layer": np.tile(layers, len(at)),
            "value": values.ravel(),
            "lane": lane.label,
        }
    )
