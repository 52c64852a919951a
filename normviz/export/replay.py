"""A finished duel as one HTML file that replays it without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..catalog import PROBES, SCHEMES
from ..frames import LaneFrame, lane_frame
from ..player import Outside, page
from .lane import ExportLane


def replay(
    lanes: Sequence[ExportLane],
    probe: str | None = None,
    title: str = "",
    words: str = "",
    **outside: Unpack[Outside],
) -> str:
    """The file's text; `probe` is shown first. Raises ValueError for a lane that was never run.

    Without `title` and `words` the placements are the title and what came out the words.
    """
    keys = [key for key in PROBES.keys() if all(key in lane.probes for lane in lanes)]  # noqa: SIM118 (a registry)
    frames = {key: [frame(lane, key) for lane in lanes] for key in keys}
    named = " against ".join(SCHEMES.label(lane.config.scheme) for lane in lanes)
    verdicts = "; ".join(f"{lane.name}: {lane.facts.verdict}" for lane in lanes)
    configs = [lane.config for lane in lanes]
    return page(
        title or f"NormViz: {named}", words or f"{verdicts}.", frames, configs, probe, **outside
    )


def frame(lane: ExportLane, probe: str) -> LaneFrame:
    """What charts draw of a lane that was run."""
    bad = None if lane.facts.bad_step is None else (lane.facts.bad_step, lane.facts.bad_layer)
    label = f"{lane.name}  {SCHEMES.label(lane.config.scheme)}"
    floor, chance = lane.facts.floor, lane.facts.chance
    return lane_frame(lane.config, lane.probes, lane.recorded, label, probe, bad, chance, floor)
