"""The loss axis: tiers, so that a spike or a solved task changes the chart only a few times."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

import numpy as np

from normviz.frames import Floats, LaneFrame

LEAST = 1e-9  # a loss of zero is drawn here: it has no place on a log axis
UNKNOWN_CHANCE = 3.0  # nats, for the axis only, until a run has measured its own
TOPS = (10.0, 100.0, 1e4, 1e6, 1e9, 1e12)
BOTTOMS = (1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6, LEAST)
# A tier holds when at most this share of a lane's steps is above it: a few early spikes are marked
# at the edge instead of flattening the rest of the run. The count only grows, so tiers only rise.
SPIKES = 0.03


def y_domain(lanes: Sequence[LaneFrame]) -> tuple[float, float]:
    """(bottom, top) of the loss axis in nats, for all losses so far; it only ever widens.

    It starts at 1.5 times chance, and just below the floor (a third of chance where there is none).
    """
    chances = [lane.chance for lane in lanes if isfinite(lane.chance)] or [UNKNOWN_CHANCE]
    first_top = 1.5 * max(chances)
    tops = (first_top, *(t for t in TOPS if t > first_top))
    top = max((_top(lane, tops) for lane in lanes), default=first_top)
    floors = [lane.floor for lane in lanes if lane.floor is not None and lane.floor > 0]
    third = min(chances) / 3
    first_bottom = min(0.8 * min(floors), third) if floors else third
    lowest = min((_lowest(lane.loss) for lane in lanes), default=np.inf)
    bottoms = (first_bottom, *(b for b in BOTTOMS if b < first_bottom))
    return next((b for b in bottoms if b <= lowest), LEAST), top


def ticks(domain: tuple[float, float], most: int = 7) -> list[float]:
    """Values to label on a log axis: round ones, fewer to the decade where there are many."""
    low, high = domain
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
        values = [d * 10.0**e for e in decades for d in digits if low <= d * 10.0**e <= high]
        if len(values) <= most:
            return values
    return values[:: ceil(len(values) / most)]


def _top(lane: LaneFrame, tops: tuple[float, ...]) -> float:
    allowed = SPIKES * lane.steps
    finite = lane.loss[np.isfinite(lane.loss)]
    return next((t for t in tops if np.count_nonzero(finite > t) <= allowed), tops[-1])


def _lowest(loss: Floats) -> float:
    return float(np.min(loss, initial=np.inf, where=np.isfinite(loss)))
