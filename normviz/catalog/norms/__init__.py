"""The norms. Each module of this folder lists its own in NORMS; nothing else lists names."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..norm import NormRecord
from ..registry import Registry


def _discover() -> Registry[NormRecord]:
    """Every record of every module here, sorted by `order`. A broken module stops the import."""
    found: list[NormRecord] = []
    for module in iter_modules(__path__):
        found += import_module(f"{__name__}.{module.name}").NORMS
    return Registry("norm", sorted(found, key=lambda norm: norm.order))


NORMS: Registry[NormRecord] = _discover()
