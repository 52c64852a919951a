"""A finished duel as one HTML file that replays it without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..catalog import PROBES
from ..duel import names
from ..duel.outcome import came_out
from ..duel.seeds import named as seed_of
from ..observed import Settings, configured, label
from ..player import SharedFiles, page
from ..runs import Recording
from ..runs.frames import LaneFrame, lane_frame
from ..runs.lane import Lane


def replay(
    lanes: Sequence[Lane],
    probe: str | None = None,
    title: str = "",
    words: str = "",
    **outside: Unpack[SharedFiles],
) -> str:
    """The file's text; `probe` is shown first. Raises ValueError for a lane that was never run.

    Where lanes have repeats, their loss curves are in it too; the layers are of the first seed.
    Without `title` and `words` the placements are the title, and the words say what came out.
    """
    keys = [key for key in PROBES.keys() if any(key in lane.recording.probes for lane in lanes)]  # noqa: SIM118 (a registry)
    shown = {key: frames(lanes, key) for key in keys}
    named = names.title([lane.config for lane in lanes])
    configs = [lane.config for lane in lanes]
    repeats = [_curves(lane) for lane in lanes]
    words = words or "\n".join(came_out(lanes).lines)
    engines = [engine for lane in lanes for engine in lane.engines]
    return page(
        title or f"NormViz: {named}", words, shown, configs, probe, repeats, engines, **outside
    )


def _curves(lane: Lane) -> list[LaneFrame]:
    """The loss curves of a lane of several seeds; none of a run that has not begun."""
    return [_frame(lane, it, it.probes[0], ()) for it in lane.repeats if len(it.steps)]


def frames(lanes: Sequence[Lane], probe: str) -> list[LaneFrame]:
    """What charts draw of lanes that were run; their names say what differs between them."""
    configs = [lane.config for lane in lanes]
    return [_frame(lane, lane.recording, probe, configs) for lane in lanes]


def _frame(lane: Lane, it: Recording, probe: str, among: Sequence[Settings]) -> LaneFrame:
    parts = (label(it.config), names.difference(it.config, among))
    named = f"{lane.letter}  {', '.join(filter(None, parts))}"
    if lane.repeats and "seed" not in named:
        named = f"{named}, {seed_of(configured(it.config))}"
    return lane_frame(it, named, probe)
