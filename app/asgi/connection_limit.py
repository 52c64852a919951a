"""How many lines of numbers may be open: in all, and of one visitor. Who comes then waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

IN_ALL = 1000
EACH = 30
"""Of a visitor: pages with charts."""
NAMELESS = 500
"""Of all together whose browsers keep no cookies: among them may be a class in another site's frame."""

_open: Counter[str | None] = Counter()


def full(who: str | None) -> str | None:
    """Why this visitor (None without a cookie) gets no line now, as the page says it; else None."""
    most, whose = (EACH, "of yours") if who else (NAMELESS, "of browsers without cookies")
    if _open[who] >= most:
        return f"Charts are open on {most} pages {whose}, the most at once"
    if _open.total() >= IN_ALL:
        return f"Charts are open on {IN_ALL} pages, the most at once"
    return None


@contextmanager
def held(who: str | None) -> Iterator[None]:
    """A line is open."""
    _open[who] += 1
    try:
        yield
    finally:
        _open[who] -= 1
        if not _open[who]:
            del _open[who]
