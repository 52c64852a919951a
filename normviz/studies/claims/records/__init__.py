"""The claims. Each module of this folder has a list CLAIMS; there is no other list of them."""

from __future__ import annotations

from ....catalog.registry import Registry
from ..record import Claim

CLAIMS: Registry[Claim] = Registry.discovered("claim", __name__, __path__, "CLAIMS")
