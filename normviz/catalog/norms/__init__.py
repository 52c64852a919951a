"""The norms. Each module of this folder lists its own in NORMS; nothing else lists names."""

from __future__ import annotations

from ..norm import Norm
from ..registry import Registry

NORMS: Registry[Norm] = Registry.discovered("norm", __name__, __path__, "NORMS")
