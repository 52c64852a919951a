"""One lane's quantity divided by another's, layer by layer: where and when they part.

Drawn as a heatmap whose colours part at 1.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from normviz.formats import number
from normviz.runs.frames import LaneFrame

from .palette import LaneStyle, ink
from .scale import Domain, probe_of, shown
from .sentences import name

MOST_DECADES = 6


def comparable(over: LaneFrame, under: LaneFrame) -> bool:
    """Whether a layer of one lane is a layer of the other."""
    return over.depth == under.depth


def quotient(over: LaneFrame, under: LaneFrame) -> LaneFrame:
    """A lane whose values are those of `over` divided by the record of `under` that holds at the step.

    Raises ValueError for lanes of different depths.
    """
    if not comparable(over, under):
        raise ValueError(f"lanes of {over.depth} and {under.depth} blocks have no layer in common")
    at = np.searchsorted(under.probe_steps, over.probe_steps, side="right") - 1
    both = (at >= 0) & (over.probe_steps < len(under.loss))
    both[both] = over.probe_steps[both] < under.held_until[at[both]]
    with np.errstate(all="ignore"):
        value = shown(over)[both] / shown(under)[at[both]]
    value[~np.isfinite(value)] = np.nan
    if probe_of(over).shown == "one_minus":
        value = 1.0 - value  # charts will take it from one again
    empty = np.full((len(value), probe_of(over).first_layer), np.nan)
    return replace(
        over,
        label=f"{name(over)} ÷ {name(under)}",
        loss=over.loss[: len(under.loss)],
        probe_steps=over.probe_steps[both],
        values=np.hstack([empty, value]),
        first_bad=None,
    )


def domain(frame: LaneFrame) -> Domain:
    """As many decades below 1 as above it."""
    values = shown(frame)
    finite = np.abs(np.log10(values[np.isfinite(values) & (values > 0)]))
    decades = min(MOST_DECADES, max(1, ceil(finite.max(initial=0.0))))
    beyond = bool(finite.max(initial=0.0) > decades)
    return Domain(
        10.0**-decades, 10.0**decades, "log", beyond, beyond, broken=bool(np.isnan(values).any())
    )


def style(dark: bool) -> LaneStyle:
    """Neither lane's colour."""
    return LaneStyle(ink(dark))


def finding(over: LaneFrame, under: LaneFrame) -> str:
    """By how much the lanes differ in the first and the last layer, at the last record."""
    frame = quotient(over, under)
    values = shown(frame)
    if not len(values):
        return "No step has been recorded in both lanes."
    first = probe_of(frame).first_layer
    ends = ((first, values[-1, 0]), (frame.depth, values[-1, -1]))
    ends_text = " and ".join(f"{number(value)} in layer {layer}" for layer, value in ends)
    return (
        f"{probe_of(frame).label} of {name(over)} divided by that of {name(under)}, at step "
        f"{frame.probe_steps[-1]}: {ends_text}."
    )
