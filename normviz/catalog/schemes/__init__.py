"""The placements. Each module of this folder lists its own in SCHEMES; nothing else lists names."""

from __future__ import annotations

from functools import lru_cache

from .. import own
from ..registry import Registry
from ..scheme import BRANCHES, Matrix, Place, Scheme

SCHEMES: Registry[Scheme] = Registry.discovered("scheme", __name__, __path__, "SCHEMES")


@lru_cache(maxsize=512)
def _own(text: str) -> Scheme | None:
    """The record of a placement of one's own: the catalogue's, where that has the same one."""
    if not own.is_own(text):
        return None
    made = own.read(text)
    return next((scheme for scheme in SCHEMES if same(scheme, made)), made)


SCHEMES.made = _own

DEPTHS = (1, 2, 5, 12, 24, 48)
"""Depths at which placements are compared."""
MATRICES: tuple[Matrix, ...] = ("query_key", "value", "out", "up", "down")


def same(scheme: Scheme, other: Scheme) -> bool:
    """Whether two placements are one: the same slots, starts and rules at every place."""
    return _ends(scheme) == _ends(other) and all(
        scheme.slots(place) == other.slots(place)
        and all(scheme.weight_gain(place, m) == other.weight_gain(place, m) for m in MATRICES)
        for place in _places()
    )


def _ends(s: Scheme) -> tuple[object, ...]:
    """What of a placement is not about places."""
    return (
        s.final_norm, s.embed_norm, s.norm, s.logit_gain, s.constraint, s.embedding_std, s.profiled, s.streams
    )  # fmt: skip


@lru_cache(maxsize=1)
def _places() -> tuple[Place, ...]:
    return tuple(
        Place(block, depth, branch)
        for depth in DEPTHS
        for block in range(1, depth + 1)
        for branch in BRANCHES
    )
