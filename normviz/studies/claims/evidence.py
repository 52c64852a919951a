"""What the runs of a claim say: each run's numbers, and the runs of one seed arm by arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...config import SETTINGS, RunConfig
from ...runs import Recording
from ...runs.verdict import WINDOW, running_mean, still_falls
from ...training.schedule import lr_at
from ..maps import Cell
from ..maps.points import Point, point, trained_below


@dataclass(frozen=True)
class CellResult:
    """One cell: what the store has of its run, or what a lab measured of it instead.

    `lowest` is a loss in nats that its end is read as if lower: what a run that still fell could reach.
    """

    cell: Cell
    recording: Recording | None = None
    lab: Mapping[str, float] = field(default_factory=dict)
    lowest: float = math.inf

    @property
    def config(self) -> RunConfig:
        """Its settings."""
        return self.cell.config

    @cached_property
    def point(self) -> Point:
        """What came of its run."""
        return point(self.cell, recording_of(self))

    def fallen(self) -> CellResult:
        """The same, down at the floor (0 where none is known) if it still fell at its end, so fast that more
        steps matter.

        A run whose learning rate came down to a tenth of its peak has ended by its own plan.
        """
        run = self.recording
        if run is None or self.point.is_lost or not still_falls(run.losses, run.chance):
            return self
        peak = max(lr_at(self.config, step) for step in range(self.config.steps))
        if lr_at(self.config, self.config.steps - 1) < peak / 10:
            return self
        return replace(self, lowest=self.point.floor or 0.0)


@dataclass(frozen=True)
class Quantity:
    """A number of one cell."""

    label: str
    unit: str
    of: Callable[[CellResult], float]

    @property
    def title(self) -> str:
        """Label and unit as an axis prints them."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True)
class Sample:
    """The cells of one seed by arm, each arm's in the order of its axes."""

    arms: Mapping[str, Sequence[CellResult]]

    def fallen(self) -> Sample:
        """The same, as it would be if all runs that still fell came down to the floor."""
        return Sample({arm: [cell.fallen() for cell in cells] for arm, cells in self.arms.items()})

    def runs(self, arm: str, **where: object) -> list[CellResult]:
        """The cells of an arm that have these settings."""
        return [
            run
            for run in self.arms[arm]
            if all(getattr(run.config, name) == value for name, value in where.items())
        ]

    def run(self, arm: str, **where: object) -> CellResult:
        """The one cell of an arm that has these settings. Raises ValueError for none or several."""
        runs = self.runs(arm, **where)
        if len(runs) != 1:
            raise ValueError(f"{len(runs)} cells of {arm!r} have {where}, expected is one")
        return runs[0]


def recording_of(cell: CellResult) -> Recording:
    """The run of a cell that was trained."""
    assert cell.recording is not None
    return cell.recording


FINAL = Quantity(
    "final loss, at most chance", "nats", lambda run: min(run.point.capped, run.lowest)
)
"""Mean loss of the last tenth of the steps; chance where it diverged or ended above."""


def _held_out(run: CellResult) -> float:
    recording = recording_of(run)
    measured = math.inf if recording.held_out is None or run.point.is_lost else recording.held_out
    return min(measured, recording.chance, run.lowest)


HELD_OUT = Quantity("held-out loss, at most chance", "nats", _held_out)
"""The loss of the last evaluation on the batch that training never read."""


def trains(run: CellResult) -> bool:
    """Whether it came at least half of the way from chance to the floor (`Point.trains`)."""
    return FINAL.of(run) <= trained_below(run.point.chance, run.point.floor)


def lifetime(level: float) -> Quantity:
    """Steps until the mean of ten losses is at most `level` nats; infinite where it never is."""

    def of(run: CellResult) -> float:
        recording = recording_of(run)
        below = np.flatnonzero(running_mean(recording.losses)[WINDOW - 1 :] <= level)
        if len(below):
            return float(below[0]) + WINDOW
        return float(len(recording.losses) + 1) if run.lowest <= level else math.inf

    return Quantity(f"steps until the mean of ten losses is {level:g} nats", "steps", of)


BACK = 0.01
"""A mean of ten losses that is this share below chance, or less, is at chance."""


def relapsed(level: float) -> Quantity:
    """Whether (1 or 0) the mean of ten losses was at most `level` nats and later back at chance."""

    def of(run: CellResult) -> float:
        recording = recording_of(run)
        means = running_mean(recording.losses)[WINDOW - 1 :]
        below = np.flatnonzero(means <= level)
        return float(len(below) and (means[below[0] :] >= (1 - BACK) * recording.chance).any())

    return Quantity("came back to chance", "", of)


FIRST = Quantity("loss at initialisation", "nats", lambda run: run.point.first)


GRADIENT = Quantity(
    "gradient of all parameters at step 0",
    "L2 norm",
    lambda run: float(recording_of(run).steps.grad_norm[0]),
)


def _largest_gradient(run: CellResult) -> float:
    norms = recording_of(run).steps.grad_norm
    return float(np.max(norms) / norms[0]) if np.isfinite(norms).all() else math.inf


GRADIENT_GROWTH = Quantity(
    "largest gradient of a run over that of step 0", "L2 over L2", _largest_gradient
)
"""Before clipping; infinite where a gradient was not finite."""


def _late_spike(run: CellResult) -> float:
    norms = recording_of(run).steps.grad_norm
    later = norms[len(norms) // 2 :]
    return float(np.max(later) / np.median(later)) if np.isfinite(later).all() else math.inf


LATE_SPIKE = Quantity(
    "largest gradient over the median", "in the second half of the steps", _late_spike
)
"""Before clipping; infinite where a gradient was not finite."""


def setting(name: str, title: str = "") -> Quantity:
    """A setting of the run."""
    return Quantity(title or SETTINGS[name].title, "", lambda run: float(getattr(run.config, name)))


def at(probe: str, step: int, layer: int) -> Quantity:
    """A probe of one layer (-1 the last block) at a recorded step; step -1 is the last one.

    A cell of a sweep records step 0, powers of two and the last step; a run of the duel all of the
    first 32 and every third after: of the later steps 32 and 128 are in both.
    """

    def of(run: CellResult) -> float:
        recording = recording_of(run)
        return recording.at(probe, recording.last if step < 0 else step, layer)

    return Quantity(f"{probe}, layer {'L' if layer < 0 else layer}", "", of)


def quotient(probe: str, step: int, above: int, below: int) -> Quantity:
    """A probe of layer `above` over that of layer `below`."""
    over, under = at(probe, step, above), at(probe, step, below)

    def of(run: CellResult) -> float:
        bottom = under.of(run)
        return over.of(run) / bottom if bottom else math.inf

    return Quantity(f"{probe}, layer {above} over layer {below}", "", of)


FIRST_LAST = quotient("grad_block", 0, 1, -1)
"""The gradient of the first block over that of the last one, at step 0."""


def greatest(probe: str) -> Quantity:
    """The largest value of a probe in any block at the last recorded step."""

    def of(run: CellResult) -> float:
        recording = recording_of(run)
        return max(
            recording.at(probe, recording.last, layer) for layer in range(1, recording.depth + 1)
        )

    return Quantity(f"largest {probe}", "", of)


def squared(quantity: Quantity, label: str) -> Quantity:
    """Its square: a variance of an RMS."""
    return Quantity(label, "", lambda run: quantity.of(run) ** 2)


def renamed(quantity: Quantity, label: str, unit: str = "") -> Quantity:
    """The same under another name."""
    return Quantity(label, unit, quantity.of)


def lab(name: str, label: str, unit: str = "") -> Quantity:
    """What a lab measured."""
    return Quantity(label, unit, lambda run: run.lab[name])
