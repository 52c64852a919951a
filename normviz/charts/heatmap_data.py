"""The heatmap's datasets: the matrix layer by step as one small picture, and marks over it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normviz.frames import LaneFrame

from .arrow import Columns
from .palette import GREY, RED, diverging, ramp, rgb
from .png import data_uri, png
from .scale import Domain, shown
from .words import first_bad

Codes = NDArray[np.uint8]
MOST_COLUMNS = MOST_ROWS = 256
EMPTY, BROKEN, ZERO, LOWEST = 0, 1, 2, 3  # codes; from LOWEST to 255 the colour scale
LEVELS = 256 - LOWEST


def _palette(colors: NDArray[np.uint8]) -> Codes:
    marks = np.array([(0, 0, 0, 0), (*rgb(RED), 255), (*rgb(GREY), 255)], np.uint8)
    return np.vstack([marks, np.hstack([colors, np.full((LEVELS, 1), 255, np.uint8)])])


PALETTE, COMPARING = _palette(ramp(LEVELS)), _palette(diverging(LEVELS))


def grid(size: int, most: int) -> tuple[int, int]:
    """(cells, steps or layers per cell) to show `size` of them in at most `most` cells."""
    per = max(1, -(-size // most))
    return -(-size // per), per


def moving(
    lane: LaneFrame, cursor: int, domain: Domain, palette: Codes = PALETTE
) -> dict[str, Columns]:
    """Datasets of one lane's heatmap with its cursor at step `cursor`: picture, veil and rule."""
    known = _known(lane)
    ahead, any_known = int(cursor + 1 < known), int(known > 0)
    picture = data_uri(png(cells(lane, domain), palette))
    return {
        "picture": {"url": [picture]},
        "ahead": {"step": np.full(ahead, cursor + 0.5), "end": np.full(ahead, known - 0.5)},
        "cursor": {"step": np.full(any_known, max(0, min(cursor, lane.steps - 1)))},
    }


def fixed(lane: LaneFrame) -> dict[str, Columns]:
    """The dataset that the cursor does not change: where the lane diverged."""
    return {"bad": _bad(lane)}


def cells(lane: LaneFrame, domain: Domain) -> Codes:
    """[rows, columns] palette codes; the last layer is the top row, layer 0 or 1 the bottom one.

    A record holds until the next one. Of several in one cell the last is shown, except that a
    number that is not finite is always shown. Columns stay empty until a step in them has run.
    """
    columns, per = grid(lane.steps, MOST_COLUMNS)
    records = _codes(lane, domain)
    steps = lane.probe_steps
    rows, layers = grid(records.shape[1], MOST_ROWS)
    out = np.zeros((columns, rows), np.uint8)
    if len(steps):
        ends = np.minimum((np.arange(columns) + 1) * per, lane.steps)
        full = np.arange(columns) * per < _known(lane)
        source = np.searchsorted(steps, ends[full], side="left") - 1
        tops = np.minimum(np.arange(rows) * layers + layers, records.shape[1]) - 1
        out[full] = np.where((source >= 0)[:, None], records[source][:, tops], EMPTY)
        at, layer = np.nonzero(records == BROKEN)
        out[steps[at] // per, layer // layers] = BROKEN
    return np.ascontiguousarray(out.T[::-1])


def _codes(lane: LaneFrame, domain: Domain) -> Codes:
    """[m, layers] palette codes of the records, lowest layer first."""
    values = shown(lane)
    share = domain.place(values)
    with np.errstate(invalid="ignore"):
        codes = np.rint(LOWEST + share * (LEVELS - 1)).astype(np.uint8)
    codes[domain.zero(values)] = ZERO
    codes[~np.isfinite(values)] = BROKEN
    return codes


def _known(lane: LaneFrame) -> int:
    """Number of steps the records speak for: the last one holds as long as the one before it."""
    steps = lane.probe_steps
    if len(steps) == 0:
        return 0
    gap = int(steps[-1] - steps[-2]) if len(steps) > 1 else 1
    ran = max(len(lane.loss), int(steps[-1]) + 1)
    return min(int(steps[-1]) + gap, ran)


def _bad(lane: LaneFrame) -> Columns:
    """Where the lane diverged, and the words beside it (at the top if unknown)."""
    bad = first_bad(lane)
    if bad is None:
        return {"step": np.empty(0, np.int64), "layer": np.empty(0), "text": [], "side": []}
    step, layer = bad
    where = "" if layer is None else f", layer {layer}"
    side = "left" if step < lane.steps * 0.6 else "right"
    return {
        "step": np.array([step]),
        "layer": np.array([lane.depth if layer is None else layer]),
        "text": [f"diverged: step {step}{where}"],
        "side": [side],
    }
