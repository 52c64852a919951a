"""What a node of a Ray cluster runs: one cell, in a process that Ray keeps warm for the next."""

from __future__ import annotations

import gc
import platform

from .. import __version__, texts
from ..characters import TextError
from ..config import ENGINE, RunConfig
from ..runs import Recording, failed
from ..store import Store, StoreError
from .cell import measure, warm
from .grid import SweepError

RELEASE = (__version__, ENGINE)
"""Whose numbers are the same as ours."""


def normviz_cell(
    release: tuple[str, int], canonical: str, early: bool, text: str | None
) -> Recording:
    """Train a cell here; `text` is what a config names by its hash, kept here from now on.

    Raises SweepError where this node's NormViz is not the one that asks.
    """
    if release != RELEASE:
        raise SweepError(
            f"the node {platform.node()} has {_named(RELEASE)} and this machine {_named(release)}, "
            "whose results may differ: install the same release on every node"
        )
    config = RunConfig.model_validate_json(canonical)
    try:
        if text is not None and not texts.is_here(config.text):
            texts.add(text, needed=lambda: Store().needed_texts())
    except (TextError, StoreError) as error:
        return failed(config, str(error))
    warm()
    gc.collect()
    return measure(config, early)


def _named(release: tuple[str, int]) -> str:
    return f"NormViz {release[0]} (engine {release[1]})"
