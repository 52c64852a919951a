"""What this server allows, chosen when it starts."""

from __future__ import annotations

from collections.abc import Iterable

from normviz.config import RunConfig
from normviz.model.texts import lacking
from normviz.policy import Policy, from_environment

_chosen: Policy | None = None


def policy() -> Policy:
    """What this server allows. Raises Misconfigured."""
    global _chosen
    if _chosen is None:
        _chosen = from_environment()
    return _chosen


def link_notices(configs: Iterable[RunConfig]) -> list[str]:
    """A sentence for each text that a link trains on and that can't be trained on here."""
    named, what = dict.fromkeys(config.text for config in configs if config.text), "This link"
    refusals = (policy().may_read(text, what) or lacking(what, text, "paste it") for text in named)
    return list(dict.fromkeys(f"{why}." for why in refusals if why))
