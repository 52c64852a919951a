"""The bars' datasets at one moment: what each lane last recorded by the cursor, by kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normviz.frames import Floats, LaneFrame

from .arrow import Columns
from .scale import Domain, probe_of, shown
from .words import name, short


def row_at(lane: LaneFrame, cursor: int) -> int | None:
    """Index of the last record at or before step `cursor`; None where there is none."""
    row = int(np.searchsorted(lane.probe_steps, cursor, side="right")) - 1
    return row if row >= 0 else None


def data(lanes: Sequence[LaneFrame], cursor: int, domain: Domain) -> dict[str, Columns]:
    """Datasets of the bars at step `cursor`; every layer of every lane is in one or more.

    bars: finite values, clamped to the axis. zeros, below, above, bad: what the axis cannot hold.
    """
    layer, lane, value = _long(lanes, cursor)
    finite, zero = np.isfinite(value), domain.zero(value)
    drawn = finite & ~zero
    names = [name(one) for one in lanes]
    return {
        "bars": {
            "layer": layer[drawn],
            "lane": lane[drawn],
            "value": value[drawn].clip(domain.lo, domain.hi),
            "name": [names[i] for i in lane[drawn]],
        },
        "zeros": {"layer": layer[zero], "lane": lane[zero]},
        "below": _where(layer, lane, drawn & (value < domain.lo)),
        "above": _where(layer, lane, drawn & (value > domain.hi)),
        "bad": _where(layer, lane, ~finite),
        "note": {"text": _note(lanes, cursor)},
    }


def _where(layer: np.ndarray, lane: np.ndarray, mask: np.ndarray) -> Columns:
    return {"layer": layer[mask], "lane": lane[mask]}


def _long(lanes: Sequence[LaneFrame], cursor: int) -> tuple[np.ndarray, np.ndarray, Floats]:
    """Columns (layer, lane, value) of all lanes' records at the cursor."""
    layers, which = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    values = [np.empty(0)]
    for index, lane in enumerate(lanes):
        row = row_at(lane, cursor)
        if row is not None:
            first = probe_of(lane).first_layer
            layers.append(np.arange(first, lane.depth + 1))
            which.append(np.full(lane.depth + 1 - first, index))
            values.append(shown(lane)[row])
    return np.concatenate(layers), np.concatenate(which), np.concatenate(values)


def _note(lanes: Sequence[LaneFrame], cursor: int) -> list[str]:
    """ "step 199", with the lanes that ended earlier named: "step 199 (D: step 47)"."""
    rows = [(lane, row) for lane in lanes if (row := row_at(lane, cursor)) is not None]
    if not rows:
        return []
    at = [int(lane.probe_steps[row]) for lane, row in rows]
    earlier = [
        f"{short(lane)}: step {step}"
        for (lane, _), step in zip(rows, at, strict=True)
        if step < max(at)
    ]
    return [f"step {max(at)}" + (f" ({', '.join(earlier)})" if earlier else "")]
