"""A run without its steps: a row of the store, or what one would say of a run that no store has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from ..catalog import SCHEMES
from ..catalog.probes import recorded_by
from ..config import RunConfig
from ..observed import Observed, Settings, configured
from ..training.events import Diverged, Started

Status = Literal["queued", "running", "paused", "finished", "diverged", "stopped", "failed"]
STATUSES: tuple[Status, ...] = get_args(Status)
OPEN = STATUSES[:3]
DONE = STATUSES[3:5]
SHIPPED = ("shipped", "shipped sweep")
COARSE = ("sweep", "shipped sweep")
"""Origins of the cells of a sweep: all losses, but layers at a few steps alone."""
CELLS = ("sweep", "reading")
"""Origins of what maps and claims ask for. It waits for all other runs, and is stored as a whole or not at
all."""


def probes_of(config: Settings) -> tuple[str, ...]:
    """Keys of the probes that a run with these settings records today, in the order of the rows."""
    if isinstance(config, Observed):
        return recorded_by("one")
    streams = SCHEMES[config.scheme].streams if config.scheme in SCHEMES else "one"
    return recorded_by(streams, config.family)


@dataclass(frozen=True, eq=False)
class Run:
    """One attempt at a config, finished or open, as it is now.

    config     its settings, with the changes of the learning rate that were made while it trained; the record
               of a run that was observed (`normviz.watch`)
    started    its `Started` event; None where it did not start
    status     queued, running or paused; finished, diverged, stopped or failed. A run of the store without
               its process has failed
    first_bad  where it diverged, or None
    message    why it was stopped or has failed, or None
    began      when training began, and
    ended      when it ended, in seconds since 1970; where no store has the run, of any clock. For a cell of a
               sweep the difference is the CPU time of its process, with the building of the model
    probes     keys of the rows of `Steps.layers`; by default all that its placement has today
    id         its number in the store, 0 where none has it; this and what follows the store alone knows
    origin     here, sweep (a cell of one), reading (of a lab), shipped, shipped sweep, observed
    created    when it was queued, in seconds since 1970
    visitor    hash of who asked for it, None where nobody on a page did
    linked     whether its link was copied, or opened by somebody else
    lab        which lab measures it, empty for a run that trains; and
    reading    what the lab measured, by name
    """

    config: Settings
    started: Started | None
    status: Status
    first_bad: Diverged | None = None
    message: str | None = None
    began: float | None = None
    ended: float | None = None
    probes: tuple[str, ...] = ()
    id: int = 0
    origin: str = ""
    created: float = 0.0
    visitor: str | None = None
    linked: bool = False
    lab: str = ""
    reading: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.probes:
            object.__setattr__(self, "probes", probes_of(self.config))

    @property
    def key(self) -> str:
        """Name of this result."""
        return reading_key(self.lab, self.config) if self.lab else self.config.key

    @property
    def is_observed(self) -> bool:
        """Whether it is of a model of somebody's own (`normviz.watch`): a loss that is NaN was not measured
        there."""
        return isinstance(self.config, Observed)

    @property
    def trained(self) -> RunConfig:
        """The settings of a configured run. Raises ValueError for an observed one."""
        return configured(self.config)

    @property
    def is_open(self) -> bool:
        """Whether it waits, trains or is paused."""
        return self.status in OPEN

    @property
    def is_done(self) -> bool:
        """Whether it reached its end, diverged or not."""
        return self.status in DONE

    @property
    def is_coarse(self) -> bool:
        """Whether its layers were recorded at a few steps alone."""
        return self.origin in COARSE

    @property
    def is_shipped(self) -> bool:
        """Whether it came with NormViz."""
        return self.origin in SHIPPED

    @property
    def seconds(self) -> float:
        """How long it trained; 0 where it did not, and while the store has it open."""
        return max(0.0, (self.ended or 0.0) - self.began) if self.began is not None else 0.0

    @property
    def stays(self) -> str | None:
        """Why this run may not be deleted, or None if it may."""
        return stays(self.id, self.status, self.origin)


def reading_key(lab: str, config: Settings) -> str:
    """Name of what a lab measures of a config."""
    return f"{lab} {config.key}"


def stays(run: int, status: str, origin: str) -> str | None:
    """Why a run may not be deleted, or None if it may."""
    if origin in SHIPPED:
        return f"run {run} ships with NormViz and stays"
    return f"run {run} is {status}: stop it first" if status in OPEN else None
