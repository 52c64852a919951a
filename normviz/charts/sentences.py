"""Numbers and events in words: the same on every chart and in its finding."""

from __future__ import annotations

from collections.abc import Sequence

from normviz.catalog import FAMILIES, PROBES
from normviz.catalog.probes import recorded_by
from normviz.runs import Recording
from normviz.runs.lane import Lane

SOLVED = 1e-3  # below this loss small gradients go with success, not with vanishing


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
