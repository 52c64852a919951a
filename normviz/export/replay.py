"""A finished duel as one HTML file that replays it without a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ..player import SharedFiles, page
from ..runs import names
from ..runs.lane import Lane
from ..runs.outcome import came_out


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
    title = title or f"NormViz: {names.title([lane.config for lane in lanes])}"
    words = words or "\n".join(came_out(lanes).lines)
    return page(names.with_names(lanes), title, words, probe, **outside)
