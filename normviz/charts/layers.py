"""One quantity over the layers as lines, lane beside lane: a model before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt

from normviz.catalog.probes import PROBES
from normviz.frames import LaneFrame

from .arrow import ipc
from .bars import finding, outside
from .bars_data import data
from .base import Spec, compiled, named, tick_label, value_scale
from .lanes import lane_color, lane_dash
from .palette import RED, LaneStyle, lane_styles
from .scale import Domain, quantised_domain

__all__ = ["chart", "finding"]

HEIGHT = 150
REACH_UP = 300  # decades: growth by a factor a layer is the finding, and there is no last step
FEW = 32  # layers; in deeper models the points would run into one another


def chart(lanes: Sequence[LaneFrame]) -> Spec:
    """The lines at step 0, ready for st.vega_lite_chart; all lanes hold the same probe."""
    domain = quantised_domain(PROBES[lanes[0].probe], lanes, reach_up=REACH_UP)
    styles = lane_styles(tuple(lane.scheme for lane in lanes))
    labels = tuple(lane.label for lane in lanes)
    constant = _spec(styles, labels, lanes[0].probe, max(lane.depth for lane in lanes), domain)
    sets = data(lanes, 0, domain)
    # The page says which step this is.
    tables = {name: ipc(columns) for name, columns in sets.items() if name != "note"}
    return {**constant, "datasets": tables}


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...], labels: tuple[str, ...], probe: str, depth: int, domain: Domain
) -> Spec:
    record = PROBES[probe]
    scale = alt.Scale(domain=[record.first_layer - 0.5, depth + 0.5], nice=False, zero=False)
    axis = alt.Axis(title="layer", grid=False, format="d", tickMinStep=1)
    place: dict[str, Any] = {"x": alt.X("layer:Q", scale=scale, axis=axis)}
    ticks = alt.Axis(title=record.unit, values=domain.ticks(4), labelExpr=tick_label(domain))
    y = alt.Y("value:Q", scale=value_scale(domain), axis=ticks)
    color = lane_color(styles, labels)
    words = [
        alt.Tooltip("name:N", title="placement"),
        alt.Tooltip("layer:Q", title="layer"),
        alt.Tooltip("value:Q", title="value", format=".3~g"),
    ]
    at = named("bars").encode(**place, y=y, color=color, tooltip=words)
    points = at.mark_point(clip=True, filled=True, size=28, opacity=1 if depth <= FEW else 0)
    layers = [
        at.mark_line(clip=True, strokeWidth=2.2).encode(strokeDash=lane_dash(styles, labels)),
        points,
        *outside(place, color),
        named("bad")
        .mark_point(shape="cross", angle=45, filled=True, size=70, color=RED, opacity=1)
        .encode(**place, y=alt.value(7)),
    ]
    return compiled(layers, HEIGHT)
