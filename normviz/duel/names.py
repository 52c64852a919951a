"""Names of the lanes of a duel: the letter, the placement, and what else differs between the lanes."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog import SCHEMES
from ..config import RunConfig
from ..links import FIELDS, shown

LETTERS = "ABCD"
NAMED = 2
"""Settings in a lane's name at most; further ones are counted."""
UNNAMED = ("scheme", "lr_edits", "text")
OFF = ("off", None)
"""Values that are not named: a lane without QK-norm is a lane with nothing more to say."""


def difference(config: RunConfig, others: Sequence[RunConfig]) -> str:
    """The lane's values of the settings that differ between the lanes, for example "warm-up 200";
    first those that the first lane has otherwise. Empty if the placement alone differs."""
    fields = [
        name
        for name in FIELDS
        if name not in UNNAMED and len({getattr(one, name) for one in (config, *others)}) > 1
    ]
    fields.sort(key=lambda name: bool(others) and getattr(config, name) == getattr(others[0], name))
    words = [_words(name, config) for name in fields if getattr(config, name) not in OFF]
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more


def lane_name(index: int, config: RunConfig, lanes: Sequence[RunConfig]) -> str:
    """ "B  Post-LN, warm-up 200": the name of one lane among all `lanes` of its duel."""
    parts = (SCHEMES.label(config.scheme), difference(config, lanes))
    return f"{LETTERS[index]}  {', '.join(filter(None, parts))}"


def _words(name: str, config: RunConfig) -> str:
    """ "warm-up 200"; a choice of norm or initialisation is a name that needs no title before it."""
    value = shown(name, getattr(config, name))
    if name == "init":
        return f"{value} init"
    return value if name == "norm" else f"{RunConfig.model_fields[name].title} {value}"
