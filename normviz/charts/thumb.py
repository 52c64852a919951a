"""A duel's loss curves as a thumbnail: a small SVG that needs no script, for a card."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normviz import formats
from normviz.runs import Recording
from normviz.runs.lane import Lane, diverged

from .curve import thinned
from .palette import GREY, styles_of
from .svg import cross, document, line

WIDTH, HEIGHT, EDGE = 152, 64, 3
POINTS = 60
HEADROOM = 1.25
"""The curves' top over chance: a lane that is lost leaves the picture there."""
LOWEST = 1e-3
"""The curves' bottom over chance, at least: a loss of 0 has no logarithm."""


def svg(lanes: Sequence[Lane]) -> str:
    """The curves over a dashed line at chance; a cross where a lane diverged. Needs a lane."""
    runs = [lane.recording for lane in lanes]
    steps, chance = max(run.total for run in runs), max(run.chance for run in runs)
    low = max(min(map(_lowest, runs)), LOWEST * chance)
    top = chance * HEADROOM

    def x(step: float) -> float:
        return EDGE + (WIDTH - 2 * EDGE) * step / max(1, steps - 1)

    def y(loss: float) -> float:
        share = (np.log(top) - np.log(max(loss, 1e-9))) / (np.log(top) - np.log(low))
        return EDGE + (HEIGHT - 2 * EDGE) * float(np.clip(share, 0, 1))

    parts = [line([(x(0), y(chance)), (x(steps - 1), y(chance))], GREY, "2 3", 1)]
    for run, style in zip(runs, styles_of(lanes), strict=True):
        at, loss = thinned(run.losses, POINTS)
        dash = " ".join(map(str, style.dash))
        curve = [(x(s), y(v)) for s, v in zip(at, loss, strict=True)]
        parts.append(line(curve, style.color, dash, 2))
        if bad := run.bad:
            parts.append(cross(x(bad[0]) + 10, EDGE + 8))
    return document(parts, WIDTH, HEIGHT)


def finding(lanes: Sequence[Lane]) -> str:
    """The same in words."""
    return " ".join(f"{lane.title}: {_sentence(lane)}." for lane in lanes)


def _lowest(run: Recording) -> float:
    """Where the picture ends: the floor, or a little below the lowest smoothed loss."""
    if run.floor:
        return run.floor
    _, loss = thinned(run.losses, POINTS)
    return 0.9 * min([*loss, run.chance])


def _sentence(lane: Lane) -> str:
    return diverged(lane) or f"loss {formats.loss(float(lane.recording.losses[-1]))} at the end"
