"""The placements. Each module of this folder lists its own in SCHEMES; nothing else lists names."""

from __future__ import annotations

from ..registry import Registry
from ..scheme import Scheme

SCHEMES: Registry[Scheme] = Registry.discovered("scheme", __name__, __path__, "SCHEMES")
