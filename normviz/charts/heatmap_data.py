"""The heatmap's datasets: the matrix layer by step as one small picture, and marks over it.

A picture takes a moment to decode, and for that moment its place is empty. So there are two, one
over the other, and each tick renews the older: the other one stays in sight. This needs columns
that never change once drawn, and nothing at all where a step has not run yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normviz.frames import LaneFrame

from .arrow import ipc
from .palette import GREY, RED, ramp, rgb
from .png import data_uri, png
from .scale import Domain, probe_of, shown
from .words import first_bad

Codes = NDArray[np.uint8]
MOST_COLUMNS = MOST_ROWS = 256
MOST_TIPS = 5000  # cells; beyond that, tooltips would cost more than the picture
EMPTY, BROKEN, ZERO, LOWEST = 0, 1, 2, 3  # codes; from LOWEST to 255 the colour scale
LEVELS = 256 - LOWEST
PALETTE = np.vstack(
    [
        np.array([(0, 0, 0, 0), (*rgb(RED), 255), (*rgb(GREY), 255)], np.uint8),
        np.hstack([ramp(LEVELS), np.full((LEVELS, 1), 255, np.uint8)]),
    ]
)


@dataclass
class Buffer:
    """The two pictures of one heatmap; a page keeps one per lane in its session state."""

    key: tuple[Any, ...] = ()
    size: int = 0
    pictures: list[bytes] = field(default_factory=list)
    older: int = 0

    def show(self, picture: bytes, key: tuple[Any, ...], size: int) -> dict[str, bytes]:
        """Datasets with `picture` in place of the older one.

        Another `key`, or fewer records (`size`) than before, is another matrix and starts afresh.
        """
        if key != self.key or size < self.size:
            self.pictures = [picture, picture]
        elif picture != self.pictures[1 - self.older]:
            self.pictures[self.older] = picture
            self.older = 1 - self.older
        self.key, self.size = key, size
        return {"back": self.pictures[0], "front": self.pictures[1]}


def grid(size: int, most: int) -> tuple[int, int]:
    """(cells, steps or layers per cell) to show `size` of them in at most `most` cells."""
    per = max(1, -(-size // most))
    return -(-size // per), per


def data(
    lane: LaneFrame, cursor: int, domain: Domain, buffer: Buffer, finished: bool = False
) -> dict[str, bytes]:
    """Arrow datasets of one lane's heatmap with its cursor at step `cursor`.

    `finished` says that no step will follow: it adds the cells' tooltips.
    """
    key = (lane.label, lane.probe, lane.depth, lane.steps, domain)
    picture = _picture(cells(lane, domain, finished))
    known = _known(lane)
    ahead, any_known = int(cursor + 1 < known), int(known > 0)
    return {
        **buffer.show(picture, key, len(lane.probe_steps)),
        "ahead": ipc({"step": np.full(ahead, cursor + 0.5), "end": np.full(ahead, known - 0.5)}),
        "cursor": ipc({"step": np.full(any_known, max(0, min(cursor, lane.steps - 1)))}),
        "bad": _bad(lane),
        "tips": _tips(lane, finished),
    }


def cells(lane: LaneFrame, domain: Domain, finished: bool) -> Codes:
    """[rows, columns] palette codes; the last layer is the top row, layer 0 or 1 the bottom one.

    A record holds until the next one. Of several in one cell the last is shown, except that a
    number that is not finite is always shown. Columns whose steps have not all run stay empty
    until the lane has ended, so that no column changes once it is drawn.
    """
    columns, per = grid(lane.steps, MOST_COLUMNS)
    records = _codes(lane, domain)
    steps = lane.probe_steps
    rows, layers = grid(records.shape[1], MOST_ROWS)
    out = np.zeros((columns, rows), np.uint8)
    if len(steps):
        ended = finished or first_bad(lane) is not None
        ends = np.minimum((np.arange(columns) + 1) * per, lane.steps)
        known = _known(lane)
        full = np.arange(columns) * per < known if ended else ends <= known
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


def _picture(codes: Codes) -> bytes:
    return ipc({"url": [data_uri(png(codes, PALETTE))]})


def _bad(lane: LaneFrame) -> bytes:
    """Where the lane diverged, and the words beside it (at the top if unknown)."""
    bad = first_bad(lane)
    if bad is None:
        return ipc({"step": np.empty(0, np.int64), "layer": np.empty(0), "text": [], "side": []})
    step, layer = bad
    where = "" if layer is None else f", layer {layer}"
    side = "left" if step < lane.steps * 0.6 else "right"
    return ipc(
        {
            "step": np.array([step]),
            "layer": np.array([lane.depth if layer is None else layer]),
            "text": [f"diverged: step {step}{where}"],
            "side": [side],
        }
    )


def _tips(lane: LaneFrame, finished: bool) -> bytes:
    """A row per cell (first step, the next cell's, layer, value) where they are not too many."""
    values = shown(lane)
    count, layers = values.shape
    rows = count if finished and values.size <= MOST_TIPS else 0
    ends = np.append(lane.probe_steps[1:], _known(lane))
    first = probe_of(lane).first_layer
    return ipc(
        {
            # Narrow columns: a replay sends these rows again at every tick.
            "first": np.repeat(lane.probe_steps[:rows].astype(np.int32), layers),
            "next": np.repeat(ends[:rows].astype(np.int32), layers),
            "layer": np.tile(np.arange(first, first + layers, dtype=np.int16), rows),
            "value": values[:rows].ravel().astype(np.float32),
        }
    )
