"""How many WebSockets of charts may be open: in all, and for one visitor. Others must wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

IN_ALL = 1000
EACH = 30
"""Pages with charts, for one visitor."""
NAMELESS = 500
"""For all browsers without cookies together: a whole class may use the page in another site's frame."""

_open: Counter[str | None] = Counter()


def full(who: str | None) -> str | None:
    """A sentence if this visitor (None without a cookie) may open no more connections; else None."""
    most, whose = (EACH, "of yours") if who else (NAMELESS, "of browsers without cookies")
    if _open[who] >= most:
        return f"Charts are open on {most} pages {whose}, the most at once"
    if _open.total() >= IN_ALL:
        return f"Charts are open on {IN_ALL} pages, the most at once"
    return None


@contextmanager
def held(who: str | None) -> Iterator[None]:
    """Count one connection as open."""
    _open[who] += 1
    try:
        yield
    finally:
        _open[who] -= 1
        if not _open[who]:
            del _open[who]
