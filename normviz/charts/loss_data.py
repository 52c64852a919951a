"""The loss chart's datasets at one moment: at most a few hundred points a lane, extremes kept."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from normviz.frames import LaneFrame

from .arrow import Column, Columns
from .words import diverged, first_bad, number, short

Steps = NDArray[np.int64]
POINTS = 400  # a lane's most drawn points; the lowest and highest of each stretch are among them
HEIGHT = 240  # pixels of the plot
ROW_HEIGHT, TOP_ROW = 16, 8  # pixels: words about events stand under one another
RATE_ROW, RATE_ROWS = HEIGHT - 22, 4  # those about learning rates over one another, so many at most
NO_STEPS = np.empty(0, np.int64)


def moving(
    lanes: Sequence[LaneFrame], cursor: int, domain: tuple[float, float]
) -> dict[str, Columns]:
    """Datasets that depend on the cursor: the curve up to step `cursor`, and what follows."""
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
        "cursor": {"step": np.arange(last + 1)[-1:].clip(max=max(cursor, 0))},
        "ahead": _points(lanes, ahead, domain),
        "past": _points(lanes, past, domain),
        "heads": _points(lanes, heads, domain),
    }


def seeds(
    repeats: Sequence[Sequence[LaneFrame]], domain: tuple[float, float]
) -> dict[str, Columns]:
    """Datasets of the repeats of each lane from other seeds: their curves, and the band they span.

    The band is over the steps that all repeats of a lane have reached.
    """
    none: list[Steps] = [NO_STEPS]
    steps, losses, lanes, numbers = [*none], [np.empty(0)], [*none], [*none]
    at, low, high, whose = [*none], [np.empty(0)], [np.empty(0)], [*none]
    for index, frames in enumerate(repeats):
        for seed, frame in enumerate(frames):
            kept = _kept(frame)
            steps.append(kept)
            losses.append(frame.loss[kept])
            lanes.append(np.full(len(kept), index))
            numbers.append(np.full(len(kept), seed))
        reached = min((len(frame.loss) for frame in frames), default=0)
        if len(frames) > 1 and reached:
            kept = _kept(frames[0])
            kept = kept[kept < reached]
            table = np.stack([frame.loss[kept] for frame in frames])
            known = np.isfinite(table).all(axis=0)
            at.append(kept[known])
            low.append(table.min(axis=0)[known])
            high.append(table.max(axis=0)[known])
            whose.append(np.full(known.sum(), index))
    floor = domain[0]
    return {
        "seeds": {
            "step": np.concatenate(steps),
            "loss": np.maximum(np.concatenate(losses), floor),
            "lane": np.concatenate(lanes),
            "seed": np.concatenate(numbers),
        },
        "band": {
            "step": np.concatenate(at),
            "loss": np.maximum(np.concatenate(low), floor),
            "highest": np.maximum(np.concatenate(high), floor),
            "lane": np.concatenate(whose),
        },
    }


def fixed(lanes: Sequence[LaneFrame], domain: tuple[float, float]) -> dict[str, Columns]:
    """Datasets that do not: chance and floor, what lies above the axis, where lanes diverged."""
    above, peaks, rows = _above(lanes, [_kept(lane) for lane in lanes], domain[1])
    return {
        "levels": _levels(lanes, domain),
        "rates": _rates(lanes),
        "above": above,
        "peaks": peaks,
        "bad": _bad(lanes, domain, rows),
    }


def _kept(lane: LaneFrame) -> Steps:
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


def _points(lanes: Sequence[LaneFrame], steps: list[Steps], domain: tuple[float, float]) -> Columns:
    losses = [lane.loss[at] for lane, at in zip(lanes, steps, strict=True)]
    return {
        "step": np.concatenate([*steps, NO_STEPS]),
        # A loss of zero has no logarithm: it lies on the lower edge.
        "loss": np.maximum(np.concatenate([*losses, np.empty(0)]), domain[0]),
        "lane": np.repeat(np.arange(len(lanes)), [len(at) for at in steps]),
    }


def _levels(lanes: Sequence[LaneFrame], domain: tuple[float, float]) -> Columns:
    """Chance and floor of all lanes, and whether the words stand under the line: the floor's do,
    where no curve is in their way."""
    known = [lane.chance for lane in lanes if isfinite(lane.chance)]
    levels = {(f"chance {number(chance)}", chance, False) for chance in known}
    for lane in lanes:
        if lane.floor is not None:
            outside = lane.floor < domain[0]
            below = " (below the axis)" if outside else ""
            levels.add((f"floor {number(lane.floor)}{below}", lane.floor, not outside))
    texts, values, under = zip(*sorted(levels), strict=True) if levels else ((), (), ())
    loss = np.maximum(np.array(values, dtype=np.float64), domain[0])
    return {"loss": loss, "text": list(texts), "under": np.array(under, dtype=bool)}


def _rates(lanes: Sequence[LaneFrame]) -> Columns:
    """Where the learning rate was changed while lanes trained; once for all that took it together."""
    taken: dict[tuple[int, float], list[str]] = {}
    for lane in lanes:
        for edit in lane.edits:
            taken.setdefault(edit, []).append(short(lane))
    steps = max((lane.steps for lane in lanes), default=1)
    changes = sorted(taken.items())
    words = [
        f"rate {number(lr)}" if len(who) == len(lanes) else f"{', '.join(who)}: rate {number(lr)}"
        for (_, lr), who in changes
    ]
    at = [step for (step, _), _ in changes]
    rows = RATE_ROW - ROW_HEIGHT * (np.arange(len(at)) % RATE_ROWS)
    return {**_words(at, words, [step / steps for step in at], 0), "row": rows}


def _above(
    lanes: Sequence[LaneFrame], kept: list[Steps], top: float
) -> tuple[Columns, Columns, int]:
    """(above, peaks, number of peaks): steps whose loss is above the axis, and the highest ones."""
    over = [
        at[np.isfinite(lane.loss[at]) & (lane.loss[at] > top)]
        for lane, at in zip(lanes, kept, strict=True)
    ]
    above = {
        "step": np.concatenate([*over, NO_STEPS]),
        "lane": np.repeat(np.arange(len(lanes)), [len(at) for at in over]),
    }
    some = [index for index, at in enumerate(over) if len(at)]
    peaks = [int(over[i][np.argmax(lanes[i].loss[over[i]])]) for i in some]
    words = [f"peak {number(lanes[i].loss[step])}" for i, step in zip(some, peaks, strict=True)]
    share = [step / lanes[i].steps for i, step in zip(some, peaks, strict=True)]
    lane = np.array(some, dtype=np.int64)
    return above, {"lane": lane, **_words(peaks, words, share, 0)}, len(some)


def _bad(lanes: Sequence[LaneFrame], domain: tuple[float, float], first_row: int) -> Columns:
    """Where each lane diverged; the cross sits on its last finite loss up to there."""
    rows = [(lane, bad) for lane in lanes if (bad := first_bad(lane)) is not None]
    last = [
        lane.loss[: step + 1][np.isfinite(lane.loss[: step + 1])][-1:] for lane, (step, _) in rows
    ]
    steps = [step for _, (step, _) in rows]
    words = [f"{short(lane)} {diverged(lane)}" for lane, _ in rows]
    share = [step / lane.steps for lane, (step, _) in rows]
    at = np.array([loss[0] if len(loss) else domain[1] for loss in last], dtype=np.float64)
    return {"loss": at.clip(*domain), **_words(steps, words, share, first_row)}


def _words(
    steps: list[int], words: list[str], share: list[float], first_row: int
) -> dict[str, Column]:
    """Columns of words beside their steps, each in a row (pixels) of its own.

    To the right of an early step, to the left of a late one: they stay inside a narrow chart.
    """
    return {
        "step": np.array(steps, dtype=np.int64),
        "row": TOP_ROW + ROW_HEIGHT * (first_row + np.arange(len(steps))),
        "text": words,
        "side": ["left" if s < 0.36 else "right" if s > 0.64 else "center" for s in share],
    }
