"""A cell's loss curves as a small picture that a tooltip can hold: one line a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .palette import GREY
from .scale import Floats
from .svg import cross, data_uri, document, line

WIDTH, HEIGHT, EDGE = 180, 76, 4
POINTS = 30
HEADROOM = 1.2
"""The picture's top over chance: a run that is lost leaves it there."""
LINE = "#3b82f6"
"""Blue that is told from a light and from a dark page."""


def picture(losses: Sequence[Floats], steps: int, chance: float, floor: float | None) -> str:
    """The curves over a dashed line at chance and one at the floor, as the address of an SVG.

    Losses of each seed from step 0 in nats, of at most `steps`; a cross ends a run that diverged. The
    background is the page's.
    """
    top, low = chance * HEADROOM, floor if floor is not None else 0.0
    low -= 0.08 * (top - low)

    def x(step: float) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * step / max(1, steps - 1)

    def y(loss: float) -> float:
        return EDGE + (HEIGHT - 2 * EDGE) * (top - min(max(loss, low), top)) / (top - low)

    parts = [
        line([(EDGE, y(level)), (WIDTH - EDGE, y(level))], GREY, "2 3", 1)
        for level in (chance, floor)
        if level is not None
    ]
    for seed in losses:
        at, means = thinned(seed, POINTS)
        parts.append(line([(x(s), y(v)) for s, v in zip(at, means, strict=True)], LINE, "", 1.5))
        if not np.isfinite(seed).all():
            parts.append(cross(x(int(np.flatnonzero(~np.isfinite(seed))[0])), EDGE + 5))
    return data_uri(document(parts, WIDTH, HEIGHT))


def thinned(losses: Floats, points: int) -> tuple[list[float], list[float]]:
    """At most `points` means of neighbouring finite losses, with their steps."""
    finite = np.flatnonzero(np.isfinite(losses))
    if not len(finite):
        return [], []
    groups = np.arange(min(points, len(finite)))
    size, larger = divmod(len(finite), len(groups))  # the first groups have one more
    starts = groups * size + np.minimum(groups, larger)
    counts = size + (groups < larger)
    steps, means = (np.add.reduceat(x, starts) / counts for x in (finite, losses[finite]))
    return steps.tolist(), means.tolist()
