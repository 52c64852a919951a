"""A lane of a duel: its settings, and what its runs recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ..catalog import FAMILIES, PROBES
from ..catalog.probes import recorded_by
from ..observed import Settings
from ..training.events import Started
from . import Run
from .frames import Frames
from .recording import Recording, Steps, of_seeds

LETTERS = "ABCD"
"""Of the lanes of a duel, in their order."""

S = TypeVar("S", bound=Settings, covariant=True)


@dataclass(frozen=True)
class Lane(Generic[S]):
    """A lane of a duel: its settings, and what its runs recorded.

    name        "B", or what sets it apart too: "B  Post-LN, warm-up 200"
    config      the settings that it has now
    recordings  of its runs, a seed each, its own first; empty where nobody ran it
    earlier     words for settings of these runs that it has no more, e.g. "depth 12"; else empty
    """

    name: str
    config: S
    recordings: tuple[Recording, ...] = ()
    earlier: str = ""

    @property
    def letter(self) -> str:
        """What precedes the name's double space ("A" of "A  Post-LN"), else the whole name."""
        return self.name.split("  ")[0]

    @property
    def label(self) -> str:
        """What charts call it: its name, and what was otherwise when it was trained."""
        return f"{self.name} (before: {self.earlier})" if self.earlier else self.name

    @property
    def title(self) -> str:
        """The label with single spaces."""
        return " ".join(self.label.split())

    @property
    def key(self) -> str:
        """Name of its result."""
        return self.config.key

    @property
    def recording(self) -> Recording:
        """What its own run recorded. Raises ValueError for a lane that nobody ran."""
        if not self.recordings:
            raise ValueError(
                f"lane {self.letter!r} ({self.key}) has no run, so there is no data of it: train it first"
            )
        return self.recordings[0]

    @property
    def repeats(self) -> tuple[Recording, ...]:
        """Its runs from all seeds, its own first; empty where there is one seed."""
        return self.recordings if len(self.recordings) > 1 else ()

    @property
    def index(self) -> int:
        """Its place in the duel, from 0."""
        return LETTERS.index(self.letter)

    @property
    def run(self) -> Recording | None:
        """What its own run recorded; None where nobody ran it."""
        return self.recordings[0] if self.recordings else None

    @property
    def is_current(self) -> bool:
        """Whether its own run has the settings that it has now."""
        return self.run is not None and self.run.config == self.config

    @property
    def without_numbers(self) -> Lane[S]:
        """The same without the steps of its runs: small enough to be held after a script run."""
        none = (replace(run, steps=Steps.of([], run.depth)) for run in self.recordings)
        return replace(self, recordings=tuple(none))

    @property
    def started(self) -> Started | None:
        """The `Started` event of its own run; None where that has not begun."""
        return self.run.started if self.run else None

    @property
    def is_on_gpu(self) -> bool:
        """Whether a CUDA GPU trained it."""
        return self.started is not None and self.started.is_on_gpu

    @property
    def is_done(self) -> bool:
        """Whether its own run reached its end, diverged or not."""
        return self.run is not None and self.run.is_done

    @property
    def final_loss(self) -> float | None:
        """Mean loss of the last tenth of the steps, in nats; None before the first step."""
        return self.run.final if self.run and len(self.run.steps) else None

    @property
    def verdict(self) -> str:
        """What came of the lane, in words: of its run, or of all seeds."""
        if self.repeats:
            return of_seeds([run for run in self.repeats if run.is_done], len(self.repeats))
        return self.recording.verdict.sentence if self.recordings else "nobody has trained it here"

    @property
    def engines(self) -> list[str]:
        """The engines of its runs, keys of `ENGINES`; none of a run that has not begun or was observed."""
        return [
            run.started.engine for run in self.recordings if run.started and not run.is_observed
        ]


def stored_lane(name: str, run: Run, frames: Frames, repeats: Sequence[Run] = ()) -> Lane:
    """A run of a store, finished or not, as it is now; `repeats` are its runs from other seeds."""
    return Lane(name, run.config, tuple(map(frames.recording, (run, *repeats))))


# Words about lanes, the same on every chart and in its finding.


def units(lanes: Sequence[Lane]) -> str:
    """The unit of the lanes' losses; "nats per token / units of its own" where they differ."""
    return " / ".join(dict.fromkeys(lane.recording.unit for lane in lanes))


def diverged(lane: Lane) -> str | None:
    """ "diverged at step 47, layer 12", or None for a lane that stayed finite."""
    bad = lane.recording.bad
    if bad is None:
        return None
    step, layer = bad
    return f"diverged at step {step}" + ("" if layer is None else f", {lane.recording.row} {layer}")


def lacking(lanes: Sequence[Lane], probe: str) -> list[str]:
    """One sentence for each lane whose run does not record the quantity."""
    return [
        f"{lane.title} has no values of it: {_reason(lane.recording, probe)}."
        for lane in lanes
        if lane.recording.lacks(probe)
    ]


def _reason(run: Recording, probe: str) -> str:
    if run.is_observed:
        return "it was not recorded of this model"
    if PROBES[probe].streams:
        return "its placement does not have two streams"
    if probe not in recorded_by("one", run.config.family):
        return f"it is not defined for the family {FAMILIES.label(run.config.family)}"
    return "its run did not record it; train its settings again"


def divergences(lanes: Sequence[Lane]) -> list[str]:
    """One sentence for each lane that diverged."""
    ends = ((lane.title, diverged(lane)) for lane in lanes)
    return [f"{lane} {end}." for lane, end in ends if end]
