"""One lane's quantity divided by another's, layer by layer: where and when they part.

Drawn as a heatmap whose colours part at 1.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from normviz.catalog.probes import PROBES
from normviz.formats import number
from normviz.runs.lane import Lane
from normviz.runs.recording import LayerValues

from .palette import LaneStyle, ink
from .scale import Domain

MOST_DECADES = 6


def comparable(over: Lane, under: Lane) -> bool:
    """Whether a layer of one lane is a layer of the other."""
    return over.recording.depth == under.recording.depth


def quotient(over: Lane, under: Lane, probe: str) -> LayerValues:
    """The values of `over` divided by the record of `under` that holds at the step.

    Raises ValueError for lanes of different depths.
    """
    a, b = over.recording, under.recording
    if not comparable(over, under):
        raise ValueError(f"lanes of {a.depth} and {b.depth} blocks have no layer in common")
    above, below = a.layers(probe), b.layers(probe)
    at = np.searchsorted(below.step, above.step, side="right") - 1
    both = (at >= 0) & (above.step < below.ran)
    both[both] = above.step[both] < below.held_until[at[both]]
    with np.errstate(all="ignore"):
        value = above.drawn[both] / below.drawn[at[both]]
    value[~np.isfinite(value)] = np.nan
    if PROBES[probe].shown == "one_minus":
        value = 1.0 - value  # charts will take it from one again
    empty = np.full((len(value), PROBES[probe].first_layer), np.nan)
    ran = min(above.ran, below.ran)
    return LayerValues(probe, above.step[both], np.hstack([empty, value]), ran, above.total)


def label(over: Lane, under: Lane) -> str:
    """ "A Pre-LN ÷ B Post-LN"."""
    return f"{over.title} ÷ {under.title}"


def domain(divided: LayerValues) -> Domain:
    """As many decades below 1 as above it."""
    values = divided.drawn
    powers = np.abs(np.log10(values[np.isfinite(values) & (values > 0)]))
    farthest = float(powers.max(initial=0.0))
    decades = min(MOST_DECADES, max(1, ceil(farthest)))
    beyond = farthest > decades
    return Domain(
        10.0**-decades, 10.0**decades, "log", beyond, beyond, broken=bool(np.isnan(values).any())
    )


def style(dark: bool) -> LaneStyle:
    """Neither lane's colour."""
    return LaneStyle(ink(dark))


def finding(over: Lane, under: Lane, probe: str) -> str:
    """By how much the lanes differ in the first and the last layer, at the last record."""
    divided = quotient(over, under, probe)
    values = divided.drawn
    if not len(values):
        return "No step has been recorded in both lanes."
    first = PROBES[probe].first_layer
    ends = ((first, values[-1, 0]), (over.recording.depth, values[-1, -1]))
    ends_text = " and ".join(f"{number(value)} in layer {layer}" for layer, value in ends)
    return (
        f"{PROBES[probe].title} of {over.title} divided by that of {under.title}, at step "
        f"{divided.step[-1]}: {ends_text}."
    )
