"""What a duel is called: by its placements, and by the settings that tell equal placements apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..catalog import SCHEMES
from ..config import RunConfig
from ..links import differences

LONGEST = 80
"""Characters of a file's name before its suffix."""
MOST_SETTINGS = 2
"""Settings that a lane's name gives; a duel that differs in more is named by its placements alone."""


def title(lanes: Sequence[RunConfig]) -> str:
    """ "Pre-LN against Post-LN", or "Post-LN against Post-LN with warm-up 200"."""
    return " against ".join(_named(lane, lanes[:i]) for i, lane in enumerate(lanes))


def file_name(lanes: Sequence[RunConfig]) -> str:
    """What files of a duel are called: "normviz-pre-ln-against-post-ln"."""
    words = re.sub(r"[^a-z0-9]+", "-", title(lanes).lower()).strip("-")
    return f"normviz-{words}"[:LONGEST].rstrip("-")


def settings(lanes: Sequence[RunConfig]) -> str:
    """The size and length of the runs in words, with every value where lanes differ."""
    named = {
        "depth": "{} blocks",
        "width": "width {}",
        "lr": "learning rate {}",
        "steps": "{} steps",
    }
    return ", ".join(
        words.format(" / ".join(dict.fromkeys(f"{getattr(lane, name):g}" for lane in lanes)))
        for name, words in named.items()
    )


def _named(lane: RunConfig, before: Sequence[RunConfig]) -> str:
    label = SCHEMES.label(lane.scheme)
    same = [other for other in before if other.scheme == lane.scheme]
    found = differences(lane, same[0]) if same else {}
    if not 0 < len(found) <= MOST_SETTINGS:
        return label
    titles = {name: RunConfig.model_fields[name].title or name for name in found}
    return f"{label} with " + " and ".join(f"{titles[n]} {now}" for n, (_, now) in found.items())
