"""A config on any task: the visitor's own text needs a text first."""

from __future__ import annotations

from normviz import RunConfig
from normviz.model import texts

WORDS = "".join(f"The {i}. lane of a duel, {i * i} steps long.\n" for i in range(200))
"""8,000 characters, enough for sequences of 512."""


def with_task(config: RunConfig, key: str) -> RunConfig:
    """The config on a task; `text` reads WORDS, which are added where they are not kept."""
    text = texts.add(WORDS) if key == "text" else ""
    return config.replace(task=key, text=text)
