"""Numbers and events in words: the same on every chart and in its finding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normviz.catalog import FAMILIES, PROBES
from normviz.catalog.probes import recorded_by
from normviz.runs.frames import LaneFrame

SOLVED = 1e-3  # below this loss small gradients go with success, not with vanishing


def name(lane: LaneFrame) -> str:
    """The lane's label with single spaces."""
    return " ".join(lane.label.split())


def short(lane: LaneFrame) -> str:
    """What precedes the label's double space ("A" of "A  Post-LN"), else the whole label."""
    return lane.label.split("  ")[0]


def units(lanes: Sequence[LaneFrame]) -> str:
    """The unit of the lanes' losses; "nats per token / units of its own" where they differ."""
    return " / ".join(dict.fromkeys(lane.unit for lane in lanes))


def first_bad(lane: LaneFrame) -> tuple[int, int | None] | None:
    """(step, layer or None) where the lane diverged: as recorded, else its first bad loss."""
    if lane.first_bad is not None or lane.is_observed:
        return lane.first_bad
    bad = np.flatnonzero(~np.isfinite(lane.loss))
    return (int(bad[0]), None) if len(bad) else None


def diverged(lane: LaneFrame) -> str | None:
    """ "diverged at step 47, layer 12", or None for a lane that stayed finite."""
    bad = first_bad(lane)
    if bad is None:
        return None
    step, layer = bad
    return f"diverged at step {step}" + ("" if layer is None else f", {lane.row} {layer}")


def lacking(lanes: Sequence[LaneFrame]) -> list[str]:
    """One sentence for each lane whose run does not record the quantity."""
    return [f"{name(lane)} has no values of it: {_reason(lane)}." for lane in lanes if lane.lacks]


def _reason(lane: LaneFrame) -> str:
    if lane.is_observed:
        return "it was not recorded of this model"
    if PROBES[lane.probe].streams:
        return "its placement does not have two streams"
    if lane.probe not in recorded_by("one", lane.family):
        return f"it is not defined for the family {FAMILIES.label(lane.family)}"
    return "its run did not record it; train its settings again"


def divergences(lanes: Sequence[LaneFrame]) -> list[str]:
    """One sentence for each lane that diverged."""
    ends = ((name(lane), diverged(lane)) for lane in lanes)
    return [f"{lane} {end}." for lane, end in ends if end]
