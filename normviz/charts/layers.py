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
from .base import Spec, compiled, named
from .lanes import lane_color, lane_dash
from .palette import RED, LaneStyle, lane_styles
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


def chart(lanes: Sequence[LaneFrame]) -> Spec:
    """The lines at step 0, ready for st.vega_lite_chart; all lanes hold the same probe."""
    probe = lanes[0].probe
    domain = quantised_domain(PROBES[probe], lanes, reach_up=REACH_UP)
    styles = lane_styles(tuple(lane.scheme for lane in lanes))
    labels = tuple(lane.label for lane in lanes)
    depth = max(lane.depth for lane in lanes)
    constant = _spec(styles, labels, probe, domain.scale)
    sets = data(lanes, 0, domain)
    # The page says which step this is.
    tables = {name: ipc(columns) for name, columns in sets.items() if name != "note"}
    return {**constant, "params": _params(depth, domain), "datasets": tables}


def _params(depth: int, domain: Domain) -> list[Spec]:
    """What differs from model to model. In the spec these are names: compiling it anew for every
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
def _spec(styles: tuple[LaneStyle, ...], labels: tuple[str, ...], probe: str, kind: str) -> Spec:
    record = PROBES[probe]
    ends = [record.first_layer - 0.5, alt.ExprRef("depth + 0.5")]
    scale = alt.Scale(domain=ends, nice=False, zero=False)
    axis = alt.Axis(title="layer", grid=False, format="d", tickMinStep=1)
    place: dict[str, Any] = {"x": alt.X("layer:Q", scale=scale, axis=axis)}
    ends = [alt.ExprRef("lo"), alt.ExprRef("hi")]
    zero = {} if kind == "log" else {"zero": False}
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(type=kind, domain=ends, nice=False, **zero),  # pyright: ignore
        axis=alt.Axis(title=record.axis_unit, values=alt.ExprRef("ticks"), labelExpr=TICKS[kind]),  # pyright: ignore
    )
    color = lane_color(styles, labels)
    words = [
        alt.Tooltip("name:N", title="placement"),
        alt.Tooltip("layer:Q", title="layer"),
        alt.Tooltip("value:Q", title="value", format=".3~g"),
    ]
    at = named("bars").encode(**place, y=y, color=color, tooltip=words)
    points = at.mark_point(clip=True, filled=True, size=28, opacity=alt.ExprRef(FEW))
    layers = [
        at.mark_line(clip=True, strokeWidth=2.2).encode(strokeDash=lane_dash(styles, labels)),
        points,
        *outside(place, color),
        named("bad")
        .mark_point(shape="cross", angle=45, filled=True, size=70, color=RED, opacity=1)
        .encode(**place, y=alt.YValue(7)),
    ]
    return compiled(layers, HEIGHT)
