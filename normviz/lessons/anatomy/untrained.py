"""What the Catalogue page measures: a config before its first step."""

from __future__ import annotations

from ...catalog.setting import Range
from ...config import DEFAULTS, SETTINGS, RunConfig

DEPTHS = Range(1, 96, whole=True)
"""Deeper models are not measured within about a second; a duel may be deeper."""
NAMES = "AB"
"""One letter for each placement that the page shows side by side."""
TRAINING = tuple(name for name, setting in SETTINGS.items() if setting.training)
"""Settings that do nothing before the first step. They get their defaults: one question, one result."""


def untrained(config: RunConfig) -> RunConfig:
    """The config with no steps, and with the default of every setting that only training uses."""
    defaults = {name: DEFAULTS[name] for name in TRAINING}
    return config.replace(**defaults, steps=0)
