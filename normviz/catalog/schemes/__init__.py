"""The placements. Each module of this folder lists its own in SCHEMES; nothing else lists names."""

from __future__ import annotations

from functools import lru_cache

from .. import own
from ..registry import Registry
from ..scheme import Scheme

SCHEMES: Registry[Scheme] = Registry.discovered("scheme", __name__, __path__, "SCHEMES")


@lru_cache(maxsize=512)
def _own(text: str) -> Scheme | None:
    """The record of a placement of one's own: the catalogue's, where that has the same one."""
    if not own.is_own(text):
        return None
    built = own.read(text)
    return next((scheme for scheme in SCHEMES if own.same(scheme, built)), built)


SCHEMES.made = _own
