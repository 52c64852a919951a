"""The loss chart's datasets at one moment: at most a few hundred points a lane, extremes kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from normviz.frames import Floats, LaneFrame

from .arrow import ipc
from .words import diverged, first_bad, number, short

POINTS = 400  # a lane's most drawn points; the lowest and highest of each stretch are among them
ROW_HEIGHT, FIRST_ROW = 16, 28  # pixels: words about divergences stand under one another


def data(lanes: Sequence[LaneFrame], cursor: int, domain: tuple[float, float]) -> dict[str, bytes]:
    """Arrow datasets of the loss chart: the curve up to step `cursor` and, faint, what follows it."""
    kept = [_kept(lane) for lane in lanes]
    past, ahead = [], []
    for lane, at in zip(lanes, kept, strict=True):
        end = min(cursor, len(lane.loss) - 1)
        # The point under the cursor is always there, so that the line ends where the cursor is.
        past.append(np.append(at[at < end], end) if end >= 0 else at[:0])
        ahead.append(np.append(end, at[at > end]) if 0 <= end < len(lane.loss) - 1 else at[:0])
    # The head of a line sits on its last finite point.
    heads = [at[np.isfinite(lane.loss[at])][-1:] for lane, at in zip(lanes, past, strict=True)]
    last = max((len(lane.loss) for lane in lanes), default=0) - 1
    return {
        "levels": _levels(lanes, domain),
        "cursor": ipc({"step": np.arange(last + 1)[-1:].clip(max=max(cursor, 0))}),
        "ahead": _points(lanes, ahead, domain),
        "past": _points(lanes, past, domain),
        "heads": _points(lanes, heads, domain),
        "above": _above(lanes, kept, domain[1]),
        "bad": _bad(lanes, domain),
    }


def _kept(lane: LaneFrame) -> NDArray[np.int64]:
    """Steps to draw, ascending: of each stretch of steps its lowest, highest and not finite one.

    Stretches are fixed by the configured steps, so points stay where they are as others arrive.
    """
    stretch = -(-2 * lane.steps // POINTS)
    steps = np.arange(len(lane.loss))
    if stretch <= 2 or len(steps) == 0:
        return steps
    padded = np.full(-(-len(steps) // stretch) * stretch, lane.loss[-1])
    padded[: len(steps)] = lane.loss
    rows = padded.reshape(-1, stretch)
    finite = np.isfinite(rows)
    picks = (
        np.where(finite, rows, np.inf).argmin(axis=1),
        np.where(finite, rows, -np.inf).argmax(axis=1),
        finite.argmin(axis=1),
    )
    starts = np.arange(len(rows)) * stretch
    at = np.unique(np.concatenate([starts + pick for pick in picks] + [steps[-1:]]))
    return at[at < len(steps)]


def _points(
    lanes: Sequence[LaneFrame], steps: list[NDArray[np.int64]], domain: tuple[float, float]
) -> bytes:
    losses = [lane.loss[at] for lane, at in zip(lanes, steps, strict=True)]
    return ipc(
        {
            "step": np.concatenate([*steps, np.empty(0, np.int64)]),
            # A loss of zero has no logarithm: it lies on the lower edge.
            "loss": np.maximum(np.concatenate([*losses, np.empty(0)]), domain[0]),
            "lane": np.repeat(np.arange(len(lanes)), [len(at) for at in steps]),
        }
    )


def _levels(lanes: Sequence[LaneFrame], domain: tuple[float, float]) -> bytes:
    levels = {(f"chance {number(lane.chance)}", lane.chance) for lane in lanes}
    for lane in lanes:
        if lane.floor is not None:
            below = " (below the axis)" if lane.floor < domain[0] else ""
            levels.add((f"floor {number(lane.floor)}{below}", lane.floor))
    ordered = sorted(levels)
    values = np.array([value for _, value in ordered], dtype=np.float64)
    return ipc({"loss": np.maximum(values, domain[0]), "text": [text for text, _ in ordered]})


def _above(lanes: Sequence[LaneFrame], kept: list[NDArray[np.int64]], top: float) -> bytes:
    """Steps whose loss is above the axis; the highest of each lane carries its value in words."""
    steps, words, which = [], [], []
    for index, (lane, at) in enumerate(zip(lanes, kept, strict=True)):
        losses: Floats = lane.loss[at]
        over = np.isfinite(losses) & (losses > top)
        peak = losses[over].max(initial=-np.inf)
        steps.append(at[over])
        words += [f"peak {number(v)}" if v == peak else "" for v in losses[over]]
        which.append(np.full(np.count_nonzero(over), index))
    return ipc(
        {
            "step": np.concatenate([*steps, np.empty(0, np.int64)]),
            "lane": np.concatenate([*which, np.empty(0, np.int64)]),
            "text": words,
        }
    )


def _bad(lanes: Sequence[LaneFrame], domain: tuple[float, float]) -> bytes:
    """Where each diverged lane stopped being finite; the cross sits on its last finite loss."""
    rows = [(lane, bad) for lane in lanes if (bad := first_bad(lane)) is not None]
    last = [
        lane.loss[np.isfinite(lane.loss) & (np.arange(len(lane.loss)) <= step)][-1:]
        for lane, (step, _) in rows
    ]
    share = [step / lane.steps for lane, (step, _) in rows]
    return ipc(
        {
            "step": np.array([step for _, (step, _) in rows], dtype=np.int64),
            "loss": np.array([at[0] if len(at) else domain[1] for at in last]).clip(*domain),
            "row": FIRST_ROW + ROW_HEIGHT * np.arange(len(rows)),
            "text": [f"{short(lane)} {diverged(lane)}" for lane, _ in rows],
            # Words stay inside a narrow chart: to the right of an early step, left of a late one.
            "side": ["left" if s < 0.36 else "right" if s > 0.64 else "center" for s in share],
        }
    )
