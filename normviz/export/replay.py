"""A finished duel as one HTML file that replays it without a server."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog import PROBES, SCHEMES
from ..frames import LaneFrame, lane_frame
from ..player import page
from .lane import ExportLane


def replay(lanes: Sequence[ExportLane], probe: str | None = None) -> str:
    """The file's text; `probe` is shown first. Raises ValueError for a lane that was never run."""
    keys = [key for key in PROBES.keys() if all(key in lane.probes for lane in lanes)]  # noqa: SIM118 (a registry)
    frames = {key: [_frame(lane, key) for lane in lanes] for key in keys}
    title = " against ".join(SCHEMES.label(lane.config.scheme) for lane in lanes)
    verdicts = "; ".join(f"{lane.name}: {lane.facts.verdict}" for lane in lanes)
    configs = [lane.config for lane in lanes]
    return page(f"NormViz: {title}", f"{verdicts}.", frames, configs, probe)


def _frame(lane: ExportLane, probe: str) -> LaneFrame:
    bad = None if lane.facts.bad_step is None else (lane.facts.bad_step, lane.facts.bad_layer)
    label = f"{lane.name}  {SCHEMES.label(lane.config.scheme)}"
    floor, chance = lane.facts.floor, lane.facts.chance
    return lane_frame(lane.config, lane.probes, lane.recorded, label, probe, bad, chance, floor)
