"""Stored runs in memory, read once for all who look at them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from math import inf

from ..formats import duration, listed
from . import Recording, Run, Steps
from .store import Store
from .verdict import Verdict


class Frames:
    """Reads and caches the steps of runs: each call reads only the steps that are new in the store.

    One object serves all visitors, so a run that many of them view is read once. It keeps about `most` bytes.
    """

    def __init__(self, store: Store, most: float = inf) -> None:
        self.store, self.most = store, most
        self._steps: OrderedDict[int, Steps] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def steps(self, run: Run) -> Steps:
        """All steps of a run so far. Raises StoreUnreadable where they are damaged."""
        with self._lock:
            steps = self._steps.get(run.id)
            last = int(steps.step[-1]) if steps is not None and len(steps.step) else -1
            fresh = self.store.steps(run, after=last)
            if steps is None or len(fresh.step):
                self._size -= 0 if steps is None else steps.nbytes
                steps = fresh if steps is None else fresh.after(steps)
                self._steps[run.id] = steps
                self._size += steps.nbytes
            self._steps.move_to_end(run.id)
            while self._size > self.most and len(self._steps) > 1:
                self._size -= self._steps.popitem(last=False)[1].nbytes
            return steps

    def recording(self, run: Run) -> Recording:
        """What a run recorded so far."""
        return Recording.of(run, self.steps(run))

    def verdict(self, run: Run) -> Verdict:
        """The verdict of a run, or its state while it is open."""
        return verdict(self.recording(run), self.store)


def verdict(recording: Recording, store: Store) -> Verdict:
    """The verdict of a run, or its state while it is open; for a waiting one its place in the queue."""
    if recording.id and recording.status == "queued":
        return Verdict("queued", queued([recording], store))
    return recording.verdict


def queued(runs: Sequence[Run], store: Store) -> str:
    """The places of waiting runs in the queue and the estimated time until the first begins, in words."""
    places = [place for run in runs if (place := store.place(run.id)) is not None]
    if not places:  # they begin just now
        return "waiting for a worker"
    numbers = f"place{'s' * (len(places) > 1)} {listed([str(place.number) for place in places])}"
    seconds = min(place.seconds for place in places)
    soon = "" if seconds < 1 else f", about {duration(seconds)}"
    first = " until the first begins" if len(places) > 1 and soon else ""
    return f"waiting, {numbers} in the queue{soon}{first}"
