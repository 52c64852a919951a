"""The charts that a browser shows, as Vega-Lite: which ones, and how they look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from .. import charts
from ..catalog import FAMILIES, PROBES
from ..charts.base import Spec, unchecked
from ..charts.scale import Domain
from ..runs.lane import Lane, units

View = Literal["heat", "ratio", "lines", "walk"]
"""The chart below loss and bars: a heatmap per lane, the first lane's values divided by the
second's, lines of the first, middle and last layer, or the signal's walk through each stack."""
VIEWS: tuple[View, ...] = get_args(View)


@dataclass(frozen=True)
class ChartOptions:
    """A visitor's view of a duel: dark page, linear axes, and the chart below loss and bars."""

    dark: bool = False
    linear: bool = False
    view: View = "heat"

    def compares(self, lanes: Sequence[Lane]) -> bool:
        """Whether a quotient of two lanes is to be shown, and there is one."""
        return self.view == "ratio" and len(lanes) > 1 and charts.ratio.comparable(*lanes[:2])


@dataclass(frozen=True)
class Axes:
    """The axes of all charts; they depend on the numbers of all lanes.

    values   of the probe
    loss     lower and upper end, in nats
    between  of one lane's values divided by another's; None where that is not shown
    """

    values: Domain
    loss: tuple[float, float]
    between: Domain | None


def axes(lanes: Sequence[Lane], probe: str, options: ChartOptions, live: bool) -> Axes:
    """The axes for everything so far; `live` keeps room for steps that will follow."""
    layers = [lane.recording.layers(probe) for lane in lanes]
    values = charts.quantised_domain(PROBES[probe], layers, live=live, linear=options.linear)
    low, high = charts.loss.y_domain([run for lane in lanes for run in lane.recordings])
    between = None
    if options.compares(lanes):
        between = charts.ratio.domain(charts.ratio.quotient(lanes[0], lanes[1], probe))
    return Axes(values, (0.0 if options.linear else low, high), between)


def walkable(lanes: Sequence[Lane]) -> bool:
    """Whether the signal walk can be drawn: its picture is of blocks that have a record, with attention and
    an FFN."""
    runs = (lane.recording for lane in lanes)
    return all(
        not run.is_observed and FAMILIES[run.config.family].first == "attention" for run in runs
    )


@unchecked
def specs(lanes: Sequence[Lane], probe: str, axes: Axes, options: ChartOptions) -> dict[str, Spec]:
    """Every chart by the name that the player knows it by."""
    styles, dark = charts.styles_of(lanes, options.dark), options.dark
    labels, runs = tuple(lane.label for lane in lanes), [lane.recording for lane in lanes]
    steps, depth = max(run.total for run in runs), max(run.depth for run in runs)
    by_name = {
        "loss": charts.loss.spec(
            styles, labels, steps, axes.loss, dark, options.linear, units(lanes)
        ),
        "bars": charts.bars.spec(styles, labels, probe, depth, axes.values, dark, runs[0].row),
    }
    if axes.between is not None:
        divided = charts.ratio.quotient(lanes[0], lanes[1], probe)
        label = charts.ratio.label(lanes[0], lanes[1])
        by_name["ratio"] = charts.heatmap.spec(
            charts.ratio.style(dark), label, probe, depth, divided.total, axes.between, dark,
            comparing=True, has_gaps=divided.has_gaps,
        )  # fmt: skip
    elif options.view == "lines":
        by_name["lines"] = charts.lines.spec(styles, labels, probe, steps, axes.values)
    elif options.view != "walk":
        for i, (label, run, style) in enumerate(zip(labels, runs, styles, strict=True)):
            by_name[f"heat{i}"] = charts.heatmap.spec(
                style, label, probe, run.depth, run.total, axes.values, dark, row=run.row,
                has_gaps=run.layers(probe).has_gaps,
            )  # fmt: skip
    config = charts.theme(dark)
    return {
        name: {**spec, "config": {**spec["config"], **config}} for name, spec in by_name.items()
    }
