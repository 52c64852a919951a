"""One cell's result as numbers and words: what tables, maps and summaries are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...runs import Recording
from ...runs.store import Store
from ...runs.verdict import HALF, NEAR_CHANCE
from .drive import found
from .grid import Cell, Grid


@dataclass(frozen=True)
class Point:
    """What came of a cell. A map holds thousands.

    kind      a verdict's word
    sentence  the verdict in words
    steps     how many it made
    loss      mean of the last tenth of them, nats per token; not finite where it diverged so
    first     loss of step 0
    falling   its verdict says that its loss still fell at its last step (`Verdict.falls`)
    engine    the engine that computed its steps, as in `events.Started`
    """

    cell: Cell
    kind: str
    sentence: str
    steps: int
    loss: float
    first: float
    chance: float
    floor: float | None
    falling: bool
    seconds: float
    engine: str = "eager"

    @property
    def is_lost(self) -> bool:
        """Whether it diverged."""
        return self.kind == "diverged"

    @property
    def final(self) -> float:
        """The final loss; NaN of a run that diverged."""
        return math.nan if self.is_lost else self.loss

    @property
    def capped(self) -> float:
        """Its loss, at most chance: what a map colours. Chance for a run that diverged."""
        return (
            min(self.loss, self.chance)
            if math.isfinite(self.loss) and not self.is_lost
            else self.chance
        )

    @property
    def trains(self) -> bool:
        """Whether it came at least half of the way from chance to the floor; where no floor is
        known, below chance by 3 %."""
        return self.capped <= trained_below(self.chance, self.floor)


TRAINS = (
    "A run trains if its loss comes at least half of the way from chance to the floor (where no floor is "
    f"known, {NEAR_CHANCE:.0%} below chance); of several seeds the median counts."
)
"""What "trains" means, as pages say it."""


def trained_below(chance: float, floor: float | None) -> float:
    """The loss up to which a run counts as one that trains."""
    return chance * (1 - NEAR_CHANCE) if floor is None else chance - HALF * (chance - floor)


def point(cell: Cell, recording: Recording) -> Point:
    """The result of a cell from what its run recorded."""
    verdict = recording.verdict
    return Point(
        cell, verdict.kind, verdict.sentence, len(recording.steps), recording.final,
        float(recording.losses[0]), recording.chance, recording.floor,
        verdict.falls, recording.seconds, recording.started.engine if recording.started else "eager",
    )  # fmt: skip


def read_points(store: Store, grid: Grid) -> list[Point]:
    """The points of all cells that the store has a result of, axis by axis and seed by seed."""
    cells = sorted(grid.cells, key=lambda cell: (cell.at, cell.seed))
    return [
        point(cell, store.recording(run, layers=False)) for cell, run in found(store, cells).items()
    ]
