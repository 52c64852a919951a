"""A finished duel as one HTML file that replays it without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..catalog import PLACEMENTS, PROBES
from ..config import RunConfig
from ..duel import names
from ..duel.seeds import named as seed_of
from ..player import SharedFiles, page
from ..runs.frames import LaneFrame, lane_frame
from .lane import ExportLane, came_out


def replay(
    lanes: Sequence[ExportLane],
    probe: str | None = None,
    title: str = "",
    words: str = "",
    **outside: Unpack[SharedFiles],
) -> str:
    """The file's text; `probe` is shown first. Raises ValueError for a lane that was never run.

    Where lanes have repeats, their loss curves are in it too; the layers are of the first seed.
    Without `title` and `words` the placements are the title, and the words say what came out.
    """
    keys = [key for key in PROBES.keys() if any(key in lane.recorded.probes for lane in lanes)]  # noqa: SIM118 (a registry)
    shown = {key: frames(lanes, key) for key in keys}
    named = names.title([lane.config for lane in lanes])
    configs = [lane.config for lane in lanes]
    repeats = [_curves(lane) for lane in lanes]
    words = words or "\n".join(came_out(lanes).lines)
    engines = [engine for lane in lanes for engine in lane.engines]
    return page(
        title or f"NormViz: {named}", words, shown, configs, probe, repeats, engines, **outside
    )


def _curves(lane: ExportLane) -> list[LaneFrame]:
    """The loss curves of a lane of several seeds; none of a run that has not begun."""
    if not lane.repeats:
        return []
    return [
        _frame(one, one.recorded.probes[0], ()) for one in lane.seeds if len(one.recorded.steps)
    ]


def frames(lanes: Sequence[ExportLane], probe: str) -> list[LaneFrame]:
    """What charts draw of lanes that were run; their names say what differs between them."""
    configs = [lane.config for lane in lanes]
    return [_frame(lane, probe, configs) for lane in lanes]


def _frame(lane: ExportLane, probe: str, among: Sequence[RunConfig]) -> LaneFrame:
    parts = (PLACEMENTS.label(lane.config.scheme), names.difference(lane.config, among))
    label = f"{lane.name}  {', '.join(filter(None, parts))}"
    if lane.repeats and "seed" not in label:
        label = f"{label}, {seed_of(lane.config)}"
    return lane_frame(lane.recorded, label, probe)
