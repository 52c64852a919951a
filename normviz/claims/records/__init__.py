"""The claims. Each module of this folder has a list CLAIMS; there is no other list of them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ...catalog.registry import Registry
from ..record import Claim


def _discover() -> Registry[Claim]:
    found: list[Claim] = []
    for module in iter_modules(__path__):
        found += import_module(f"{__name__}.{module.name}").CLAIMS
    return Registry("claim", sorted(found, key=lambda claim: claim.order))


CLAIMS: Registry[Claim] = _discover()
