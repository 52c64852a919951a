"""The charts that a browser shows, as Vega-Lite: which ones, and how they look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from .. import charts
from ..catalog import PROBES
from ..charts.base import Spec
from ..charts.scale import Domain
from ..frames import LaneFrame

View = Literal["heat", "ratio", "lines", "walk"]
"""What stands below loss and bars: a heatmap a lane, the first lane's values divided by the
second's, lines of the first, middle and last layer, or the signal's walk through each stack."""
VIEWS: tuple[View, ...] = get_args(View)


@dataclass(frozen=True)
class Look:
    """How a visitor looks at a duel: dark page, linear axes, and what stands below."""

    dark: bool = False
    linear: bool = False
    view: View = "heat"

    def compares(self, lanes: Sequence[LaneFrame]) -> bool:
        """Whether a quotient of two lanes is to be shown, and there is one."""
        return self.view == "ratio" and len(lanes) > 1 and charts.ratio.comparable(*lanes[:2])


def specs(
    lanes: Sequence[LaneFrame],
    domain: Domain,
    loss_domain: tuple[float, float],
    between: Domain | None,
    look: Look,
) -> dict[str, Spec]:
    """Every chart by the name that the player knows it by."""
    styles = charts.styles_of(lanes, look.dark)
    labels = tuple(lane.label for lane in lanes)
    steps, depth = max(lane.steps for lane in lanes), max(lane.depth for lane in lanes)
    probe, dark = PROBES[lanes[0].probe].key, look.dark
    found = {
        "loss": charts.loss.spec(styles, labels, steps, loss_domain, dark, look.linear),
        "bars": charts.bars.spec(styles, labels, probe, depth, domain, dark),
    }
    if between is not None:
        frame = charts.ratio.quotient(*lanes[:2])
        found["ratio"] = charts.heatmap.spec(
            charts.ratio.style(dark), frame.label, probe, depth, frame.steps, between, dark,
            comparing=True,
        )  # fmt: skip
    elif look.view == "lines":
        found["lines"] = charts.lines.spec(styles, labels, probe, steps, domain)
    elif look.view != "walk":
        for i, (lane, style) in enumerate(zip(lanes, styles, strict=True)):
            found[f"heat{i}"] = charts.heatmap.spec(
                style, lane.label, probe, lane.depth, lane.steps, domain, dark
            )
    config = charts.look(dark)
    return {name: {**spec, "config": {**spec["config"], **config}} for name, spec in found.items()}


def charts_at(
    lanes: Sequence[LaneFrame],
    cursor: int,
    *,
    dark: bool = False,
    linear: bool = False,
    repeats: Sequence[Sequence[LaneFrame]] = (),
) -> dict[str, Callable[[], Spec]]:
    """Every chart that these lanes have at step `cursor`, whole: what makes it, by its name."""
    domain = charts.quantised_domain(PROBES[lanes[0].probe], lanes, linear=linear)
    styles = charts.styles_of(lanes, dark)
    found: dict[str, Callable[[], Spec]] = {
        "loss": lambda: charts.loss.chart(lanes, cursor, dark, repeats, linear),
        "bars": lambda: charts.bars.chart(lanes, cursor, domain, dark),
        "lines": lambda: charts.lines.chart(lanes, domain),
    }
    for i, (lane, style) in enumerate(zip(lanes, styles, strict=True)):
        found[f"heat{i}"] = partial(
            charts.heatmap.chart, lane, cursor, domain, style=style, dark=dark
        )
    if len(lanes) > 1 and charts.ratio.comparable(*lanes[:2]):
        found["ratio"] = lambda: charts.ratio.chart(lanes[0], lanes[1], cursor, dark)
    return found
