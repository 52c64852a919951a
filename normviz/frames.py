"""Stored runs as arrays and tidy tables: what charts draw and what visitors take away."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import hosted
from .catalog import PROBES
from .config import RunConfig
from .store import Run, Steps, Store
from .store.run import UNWATCHED
from .verdict import Verdict, diverged, judge

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LaneFrame:
    """One lane of a duel, as charts need it. Arrays only; no database, no torch.

    label        what the lane is called on screen, e.g. "A  Post-LN"
    scheme       key of its placement (decides its colour)
    depth        number of blocks L
    steps        steps the run was asked for (the x axis is fixed to it)
    loss         [n] training loss in nats per token of steps 0..n-1; NaN or inf where not finite
    probe        key of the probe whose values follow
    probe_steps  [m] steps at which the probe was recorded, ascending
    values       [m, L+1] value per layer; layers below the probe's first_layer are NaN and mean nothing
    first_bad    (step, layer) where the run diverged, or None; layer None where unknown
    chance       loss of the best guess that ignores the context, in nats (unigram entropy)
    floor        lowest reachable loss in nats, or None where unknown
    edits        (step, peak learning rate) of each change of the rate that the run has reached
    earlier      words for settings that the page shows no more, e.g. "depth 12"; empty for a run of
                 the page's own settings
    """

    label: str
    scheme: str
    depth: int
    steps: int
    loss: Floats
    probe: str
    probe_steps: NDArray[np.int64]
    values: Floats
    first_bad: tuple[int, int | None] | None
    chance: float
    floor: float | None
    edits: tuple[tuple[int, float], ...] = ()
    earlier: str = ""


KEPT_BYTES, KEPT_HOSTED = 128 * 2**20, 16 * 2**20
"""Of runs' steps in memory, the second where a gigabyte has to do for everything; a hero run is a
tenth of a megabyte, one of depth 1000 ten of them."""


class Frames:
    """Reads runs step by step: each look fetches what the store got since the last one.

    One object serves all visitors, so a run that many watch is read once.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._kept: OrderedDict[int, Steps] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def steps(self, run: Run) -> Steps:
        """All steps of a run so far."""
        with self._lock:
            kept = self._kept.get(run.id)
            last = int(kept.step[-1]) if kept is not None and len(kept.step) else -1
            fresh = self.store.steps(run, after=last)
            if kept is None or len(fresh.step):
                self._size -= 0 if kept is None else kept.nbytes
                kept = fresh if kept is None else _joined(kept, fresh)
                self._kept[run.id] = kept
                self._size += kept.nbytes
            self._kept.move_to_end(run.id)
            most = KEPT_HOSTED if hosted.limits() else KEPT_BYTES
            while self._size > most and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1].nbytes
            return kept

    def lane(self, run: Run, label: str, probe: str, earlier: str = "") -> LaneFrame:
        """A run as one lane of the charts. Raises ValueError for a probe the run did not record."""
        bad = None if run.bad_step is None else (run.bad_step, run.bad_layer)
        steps = self.steps(run)
        return lane_frame(
            run.config, run.probes, steps, label, probe, bad, run.chance, run.floor, earlier
        )

    def verdict(self, run: Run) -> Verdict:
        """What came of a run, or what it is doing."""
        return told(run, self.steps(run).loss, self.store)

    def tidy(self, runs: dict[str, Run]) -> pd.DataFrame:
        """Every number of some lanes as one long table.

        Columns: lane (its name), step, layer (0 embedding, 1..L blocks; empty for the whole model),
        probe (a key of `catalog.PROBES`, or loss in nats, lr, grad_norm), value.
        """
        tables = [_tidy(lane, run, self.steps(run)) for lane, run in runs.items()]
        return pd.concat(tables, ignore_index=True)


def lane_frame(
    config: RunConfig,
    probes: Sequence[str],
    steps: Steps,
    label: str,
    probe: str,
    bad: tuple[int, int | None] | None,
    chance: float | None,
    floor: float | None,
    earlier: str = "",
) -> LaneFrame:
    """What a run recorded, as one lane. Raises ValueError for a probe that it did not record."""
    values = steps.layers[:, list(probes).index(probe)]
    # Where nothing was updated there is no update to measure, which is not the same as a NaN.
    there = np.full(len(values), True)
    if probe == "update_ratio":
        there = ~np.isnan(values).all(axis=1)
    return LaneFrame(
        label=f"{label} (before: {earlier})" if earlier else label,
        scheme=config.scheme,
        depth=config.depth,
        steps=max(config.steps, 1),
        loss=steps.loss,
        probe=probe,
        probe_steps=steps.layer_steps[there],
        values=values[there],
        first_bad=bad,
        chance=chance or float("nan"),
        floor=floor,
        edits=tuple(edit for edit in config.lr_edits if edit[0] < len(steps.loss)),
        earlier=earlier,
    )


def told(run: Run, losses: Floats, store: Store) -> Verdict:
    """What came of a run with these losses [n], or what it is doing."""
    n = len(losses)
    if run.status == "diverged" and run.bad_step is not None:
        return diverged(run.bad_step, run.bad_layer, run.bad_where)
    if run.status == "finished" and run.chance is not None:
        return judge(losses, run.config.steps, run.chance, run.floor)
    if run.status == "queued":
        return Verdict("queued", queued([run], store))
    if run.status == "failed":
        return Verdict("failed", f"failed after {n} steps: {run.message}")
    if run.status == "stopped":
        how = " unwatched" if run.message == UNWATCHED else ""
        why = f": {run.message}" if run.message else ""
        return Verdict("stopped", f"stopped{how} after {n} steps{why}")
    return Verdict(run.status, {"running": "training"}.get(run.status, run.status))


def queued(runs: Sequence[Run], store: Store) -> str:
    """Where runs that wait stand, and about how long it takes until the first of them begins."""
    places = [place for run in runs if (place := store.place(run.id)) is not None]
    if not places:  # they begin just now
        return "waiting for a worker"
    *others, last = (str(place.number) for place in places)
    numbers = f"places {', '.join(others)} and {last}" if others else f"place {last}"
    if store.is_timing():
        return f"waiting for the norm cost lab, {numbers} in the queue"
    seconds = min(place.seconds for place in places)
    soon = "" if seconds < 1 else f", about {_duration(seconds)}"
    return f"waiting, {numbers} in the queue{soon}{' until the first begins' if others and soon else ''}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _joined(a: Steps, b: Steps) -> Steps:
    pairs = ((getattr(a, name), getattr(b, name)) for name in Steps.__dataclass_fields__)
    return Steps(*(np.concatenate(pair) for pair in pairs))


def _tidy(lane: str, run: Run, steps: Steps) -> pd.DataFrame:
    """One lane of `Frames.tidy`."""
    scalars = {"loss": steps.loss, "lr": steps.lr, "grad_norm": steps.grad_norm}
    parts = [_part(name, steps.step, None, values) for name, values in scalars.items()]
    for i, key in enumerate(run.probes):
        layers = np.arange(PROBES[key].first_layer, run.config.depth + 1)
        at = np.repeat(steps.layer_steps, len(layers))
        values = steps.layers[:, i, layers].ravel()
        parts.append(_part(key, at, np.tile(layers, len(steps.layer_steps)), values))
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "lane", lane)
    return table


def _part(probe: str, step: Ints, layer: Ints | None, value: Floats) -> pd.DataFrame:
    """Rows of one probe; without layers for a number of the whole model."""
    empty = pd.array([pd.NA] * len(step), dtype="Int64")
    layers = empty if layer is None else pd.array(layer, dtype="Int64")
    return pd.DataFrame({"step": step, "layer": layers, "probe": probe, "value": value})
