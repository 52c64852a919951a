"""Stored runs as arrays, for charts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

from .. import hosted
from ..catalog import FAMILIES
from ..formats import duration, listed
from . import Recording, Steps
from .store import Run, Store
from .verdict import Verdict

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LaneFrame:
    """One lane of a duel, as charts need it. Arrays only; no database, no torch.

    label        name of the lane on the page, e.g. "A  Post-LN"
    scheme       key of its placement (decides its colour)
    depth        number of blocks L, or of time steps
    steps        number of steps in the run's config (the x axis is fixed to it)
    loss         [n] training loss in nats per token of steps 0..n-1; NaN or inf where not finite
    probe        key of the probe whose values follow
    probe_steps  [m] steps at which the probe was recorded, ascending
    values       [m, L+1] value per layer, 0 where it is lost in rounding; layers below the probe's
                 first_layer are NaN and mean nothing
    first_bad    (step, layer) where the run diverged, or None; layer None where unknown
    chance       loss of the best guess that ignores the context, in nats (unigram entropy)
    floor        lowest reachable loss in nats, or None where unknown
    edits        (step, peak learning rate) of each change of the rate that the run has reached
    recorded     keys of the probes that the run records, the others have no values here
    earlier      words for settings that the page no longer shows, e.g. "depth 12"; empty for a run of
                 the page's own settings
    held_out_steps [k] steps after which the held-out loss was measured, ascending
    held_out     [k] held-out loss in nats per token
    is_observed  whether it is a run of somebody's own model: a loss that is NaN was not measured there
    family       key of the family of its model
    unit         unit of the losses
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
    held_out_steps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    held_out: Floats = field(default_factory=lambda: np.empty(0))
    recorded: tuple[str, ...] = ()
    is_observed: bool = False
    family: str = "decoder"
    unit: str = "nats per token"

    @property
    def row(self) -> str:
        """What a row of `values` is: "layer", or "time step" of a recurrent net."""
        return FAMILIES[self.family].rows

    @property
    def held_until(self) -> NDArray[np.int64]:
        """[m] The first step that a record does not hold for: that of the next record, if it comes within
        three steps or a fortieth of the run, else the next step. The last record holds as long as the one
        before it."""
        at = self.probe_steps
        if not len(at):
            return at
        before = at[-2] if len(at) > 1 else at[-1] - 1
        end = min(2 * at[-1] - before, max(len(self.loss), at[-1] + 1))
        until = np.append(at[1:], end)
        return np.where(until - at <= max(3, ceil(self.steps / 40)), until, at + 1)

    @property
    def has_gaps(self) -> bool:
        """Whether there are steps between the records for which none holds."""
        return bool((self.held_until[:-1] < self.probe_steps[1:]).any())

    @property
    def lacks(self) -> bool:
        """Whether the run does not record this probe."""
        return bool(self.recorded) and self.probe not in self.recorded


KEPT_BYTES, KEPT_HOSTED = 128 * 2**20, 16 * 2**20
"""The limit of runs' steps in memory, the second on a hosted server, which has about a gigabyte for
everything; a hero run takes a tenth of a megabyte, one of depth 1000 about ten megabytes."""


class Frames:
    """Reads and caches the steps of runs: each call reads only the steps that are new in the store.

    One object serves all visitors, so a run that many of them view is read once.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._kept: OrderedDict[int, Steps] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def steps(self, run: Run) -> Steps:
        """All steps of a run so far. Raises StoreUnreadable where they are damaged."""
        with self._lock:
            kept = self._kept.get(run.id)
            last = int(kept.step[-1]) if kept is not None and len(kept.step) else -1
            fresh = self.store.steps(run, after=last)
            if kept is None or len(fresh.step):
                self._size -= 0 if kept is None else kept.nbytes
                kept = fresh if kept is None else fresh.after(kept)
                self._kept[run.id] = kept
                self._size += kept.nbytes
            self._kept.move_to_end(run.id)
            most = KEPT_HOSTED if hosted.limits() else KEPT_BYTES
            while self._size > most and len(self._kept) > 1:
                self._size -= self._kept.popitem(last=False)[1].nbytes
            return kept

    def recording(self, run: Run) -> Recording:
        """What a run recorded so far."""
        return run.recording(self.steps(run))

    def lane(self, run: Run, label: str, probe: str, earlier: str = "") -> LaneFrame:
        """A run as one lane of the charts, without values of a probe that the run does not record."""
        return lane_frame(self.recording(run), label, probe, earlier)

    def verdict(self, run: Run) -> Verdict:
        """The verdict of a run, or its state while it is open."""
        return verdict(self.recording(run), self.store)


def lane_frame(it: Recording, label: str, probe: str, earlier: str = "") -> LaneFrame:
    """What a run recorded, as one lane, without values of a probe that it did not record."""
    bad, layers = it.first_bad, it.layers(probe)
    held_out_steps, held_out = it.held_out_curve
    return LaneFrame(
        label=f"{label} (before: {earlier})" if earlier else label,
        scheme=it.config.scheme,
        depth=it.depth,
        steps=it.total,
        loss=it.losses,
        probe=probe,
        probe_steps=layers.step,
        values=layers.values,
        first_bad=None if bad is None else (bad.step, bad.layer),
        chance=it.chance,
        floor=it.floor,
        edits=it.edits,
        earlier=earlier,
        held_out_steps=held_out_steps,
        held_out=held_out,
        recorded=it.probes,
        is_observed=it.is_observed,
        family=it.config.family,
        unit=it.unit,
    )


def verdict(it: Recording, store: Store) -> Verdict:
    """The verdict of a run, or its state while it is open; for a waiting one its place in the queue."""
    if it.stored is not None and it.status == "queued":
        return Verdict("queued", queued([it.stored], store))
    return it.verdict


def queued(runs: Sequence[Run], store: Store) -> str:
    """The places of waiting runs in the queue and the estimated time until the first begins, in words."""
    places = [place for run in runs if (place := store.place(run.id)) is not None]
    if not places:  # they begin just now
        return "waiting for a worker"
    numbers = f"place{'s' * (len(places) > 1)} {listed([str(place.number) for place in places])}"
    if store.is_timing():
        return f"waiting for the norm cost lab, {numbers} in the queue"
    seconds = min(place.seconds for place in places)
    soon = "" if seconds < 1 else f", about {duration(seconds)}"
    first = " until the first begins" if len(places) > 1 and soon else ""
    return f"waiting, {numbers} in the queue{soon}{first}"
