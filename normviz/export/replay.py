"""A finished duel as one HTML file that replays it without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..catalog import PROBES, SCHEMES
from ..duel import titles
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
    keys = [key for key in PROBES.keys() if all(key in lane.recorded.probes for lane in lanes)]  # noqa: SIM118 (a registry)
    frames = {key: [frame(lane, key) for lane in lanes] for key in keys}
    named = titles.title([lane.config for lane in lanes])
    configs = [lane.config for lane in lanes]
    repeats = [_curves(lane) for lane in lanes]
    words = words or "\n".join(came_out(lanes).lines)
    return page(
        title or f"NormViz: {named}", words, frames, configs, probe, repeats, **outside
    )  # fmt: skip


def _curves(lane: ExportLane) -> list[LaneFrame]:
    """The loss curves of a lane of several seeds; none of a run that has not begun."""
    if not lane.repeats:
        return []
    return [frame(one, one.recorded.probes[0]) for one in lane.seeds if len(one.recorded.steps)]


def frame(lane: ExportLane, probe: str) -> LaneFrame:
    """What charts draw of a lane that was run."""
    seed = f", {seed_of(lane.config)}" if lane.repeats else ""
    label = f"{lane.name}  {SCHEMES.label(lane.config.scheme)}{seed}"
    return lane_frame(lane.recorded, label, probe)
