"""One quantity over the layers as lines, lane beside lane: a model before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import altair as alt
import numpy as np

from normviz.catalog.probes import PROBES
from normviz.runs.lane import Lane

from .bars import finding, inside, outside, row_at
from .base import Columns, Spec, compiled, ipc
from .palette import LaneStyle, lane_color, lane_dash, styles_of
from .scale import Domain, quantised_domain

__all__ = ["chart", "finding"]

HEIGHT = 150
REACH_UP = 300  # decades: growth by a factor a layer is the finding, and there is no last step
PLAIN = "replace(format(datum.value, '.0e'), '+', '')"
TICKS = {
    "log": f"below && datum.value < 1.01 * lo ? '≤' + {PLAIN} : "
    f"above && datum.value > 0.99 * hi ? '≥' + {PLAIN} : {PLAIN}",
    "linear": "format(datum.value, '.2~f')",
}
FEW = "depth <= 32 ? 1 : 0"  # opacity: in deeper models the points would run into one another


def chart(lanes: Sequence[Lane], probe: str) -> Spec:
    """The lines at step 0, ready for st.vega_lite_chart."""
    layers = [lane.recording.layers(probe) for lane in lanes]
    domain = quantised_domain(PROBES[probe], layers, reach_up=REACH_UP)
    styles, labels = styles_of(lanes), tuple(lane.label for lane in lanes)
    depth = max(lane.recording.depth for lane in lanes)
    constant = _spec(styles, labels, probe, domain.scale)
    params = [*constant["params"], *_params(depth, domain)]
    return {**constant, "params": params, "datasets": {"bars": ipc(_rows(lanes, probe))}}


def _rows(lanes: Sequence[Lane], probe: str) -> Columns:
    """What each lane recorded at step 0, layer by layer."""
    each = ((i, lane, lane.recording.layers(probe)) for i, lane in enumerate(lanes))
    there = [
        (i, lane, values.drawn[0]) for i, lane, values in each if row_at(values, 0) is not None
    ]
    first, counts = PROBES[probe].first_layer, [len(values) for _, _, values in there]
    return {
        "layer": np.concatenate([np.empty(0, np.int64), *(np.arange(n) + first for n in counts)]),
        "lane": np.repeat([i for i, _, _ in there], counts).astype(np.int64),
        "value": np.concatenate([np.empty(0), *(values for _, _, values in there)]),
        "name": [lane.title for _, lane, values in there for _ in values],
    }


def _params(depth: int, domain: Domain) -> list[Spec]:
    """What differs from model to model. In the spec these are names: compiling it again for every
    depth and every range would take longer than measuring."""
    values = {
        "depth": depth,
        "lo": domain.lo,
        "hi": domain.hi,
        "ticks": domain.ticks(4),
        "below": domain.below,
        "above": domain.above,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


@lru_cache(maxsize=64)
def _spec(
    styles: tuple[LaneStyle, ...],
    labels: tuple[str, ...],
    probe: str,
    kind: Literal["log", "linear"],
) -> Spec:
    record = PROBES[probe]
    ends = [record.first_layer - 0.5, alt.ExprRef("depth + 0.5")]
    scale = alt.Scale(domain=ends, nice=False, zero=False)
    axis = alt.Axis(title="layer", grid=False, format="d", tickMinStep=1)
    place: dict[str, Any] = {"x": alt.X("layer:Q", scale=scale, axis=axis)}
    ends = [alt.ExprRef("lo"), alt.ExprRef("hi")]
    zero: dict[str, Any] = {} if kind == "log" else {"zero": False}
    y = alt.Y(
        "inside:Q",
        scale=alt.Scale(type=kind, domain=ends, nice=False, **zero),
        axis=alt.Axis(title=record.axis_unit, values=alt.ExprRef("ticks"), labelExpr=TICKS[kind]),
    )
    color = lane_color(styles, labels)
    words = [
        alt.Tooltip("name:N", title="placement"),
        alt.Tooltip("layer:Q", title="layer"),
        alt.Tooltip("inside:Q", title="value", format=".3~g"),
    ]
    at = inside("lo", "hi", kind == "log").encode(**place, y=y, color=color, tooltip=words)
    points = at.mark_point(clip=True, filled=True, size=28, opacity=alt.ExprRef(FEW))
    layers = [
        at.mark_line(clip=True, strokeWidth=2.2).encode(strokeDash=lane_dash(styles, labels)),
        points,
        *outside(place, color, "lo", "hi", kind == "log", cross=70),
    ]
    return compiled(layers, HEIGHT)
