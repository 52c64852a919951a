"""The placements. Each module of this folder lists its own in SCHEMES; nothing else lists names."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..registry import Registry
from ..scheme import Scheme


def _discover() -> Registry[Scheme]:
    """Every record of every module here, sorted by `order`. A broken module stops the import."""
    found: list[Scheme] = []
    for module in iter_modules(__path__):
        found += import_module(f"{__name__}.{module.name}").SCHEMES
    return Registry("scheme", sorted(found, key=lambda scheme: scheme.order))


SCHEMES: Registry[Scheme] = _discover()
