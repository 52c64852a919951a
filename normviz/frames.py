"""Stored runs as arrays and tidy tables: what charts draw and what visitors take away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LaneFrame:
    """One lane of a duel, as charts need it. Arrays only; no database, no torch.

    label        what the lane is called on screen, e.g. "A  Post-LN"
    scheme       key of its placement (decides its colour)
    depth        number of blocks L
    steps        steps the run was asked for (the x axis is fixed to it)
    loss         [n] training loss in nats per token of steps 0..n-1; NaN or inf where not finite
    probe        key of the probe whose values follow
    probe_steps  [m] steps at which the probe was recorded, ascending
    values       [m, L+1] value per layer; layers below the probe's first_layer are NaN and mean nothing
    first_bad    (step, layer) of the first non-finite number, or None; layer None where unknown
    chance       loss of the best guess that ignores the context, in nats (unigram entropy)
    floor        lowest reachable loss in nats, or None where unknown
    """

    label: str
    scheme: str
    depth: int
    steps: int
    loss: Floats
    probe: str
    probe_steps: NDArray[np.int64]
    values: Floats
    first_bad: tuple[int, int | None] | None
    chance: float
    floor: float | None
