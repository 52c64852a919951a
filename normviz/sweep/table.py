"""A sweep as one tidy table: a row a cell."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from .grid import Grid
from .points import Point


def table(grid: Grid, points: Iterable[Point]) -> pd.DataFrame:
    """A column for each axis, then

    seed         which repeat, from 0
    run          key of the result: engine version and hash of the config
    result       learned, solved, stuck, above, unsettled, short, measured, diverged, or flat (stopped
                 early)
    verdict      the same in words
    steps        how many it made
    final_loss   mean loss of the last tenth of the steps, nats per token; NaN where it diverged or
                 was stopped early
    last_loss    that mean whatever came of it
    capped_loss  last_loss, at most chance; chance where it diverged
    first_loss   loss of step 0
    chance       loss of the best guess that ignores the context
    floor        lowest reachable loss; NaN where unknown
    excess       final_loss - floor
    falling      whether the loss still fell at the end: undertrained, not unstable
    seconds      of one core
    """
    rows = [
        {
            **{axis.field: axis.values[i] for axis, i in zip(grid.axes, one.cell.at, strict=True)},
            "seed": one.cell.seed,
            "run": one.cell.key,
            "result": one.kind,
            "verdict": one.sentence,
            "steps": one.steps,
            "final_loss": one.final,
            "last_loss": one.loss,
            "capped_loss": one.capped,
            "first_loss": one.first,
            "chance": one.chance,
            "floor": float("nan") if one.floor is None else one.floor,
            "excess": float("nan") if one.floor is None else one.final - one.floor,
            "falling": one.falling,
            "seconds": one.seconds,
        }
        for one in points
    ]
    return pd.DataFrame(rows)
