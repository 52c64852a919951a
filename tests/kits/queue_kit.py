"""The queue of a shared server while new cookies queue runs without end: how long an honest visitor waits.

Requests, refusals and hand-outs are those of the real store. Time is simulated: a run takes its estimate.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from normviz import RunConfig
from normviz.config import estimated_seconds
from normviz.lessons.presets import PRESETS
from normviz.policy import SHARED, SWITCH, Refused
from normviz.runs.store import Store, queue
from normviz.runs.store.queue import enqueue

A_SECOND = 10
"""New cookies a second, each with one request."""
EVERY = 60.0
"""Seconds between two honest visitors, who come from an address each."""
TICK = 0.2
RETRY = 5.0
"""Seconds after which an honest visitor who was refused asks again."""
START = 1e9


@dataclass
class Honest:
    """An honest visitor: when they came, how often they were refused, and when their last lane began."""

    came: float
    runs: list[int] = field(default_factory=list)
    refused: int = 0
    began: float | None = None


@dataclass
class SimulatedQueue:
    """What the honest visitors of a simulation met."""

    visitors: list[Honest]
    end: float

    @property
    def waits(self) -> list[float]:
        """Seconds until each one's hero began; for one whose did not, until the end."""
        return [(one.began or self.end) - one.came for one in self.visitors]


def simulate(addresses: int, minutes: float, longest: bool, known: bool = True) -> SimulatedQueue:
    """What honest visitors meet while new cookies from so many addresses queue heroes, or the longest
    runs that the server takes. Where addresses are not `known`, the server counts visitors alone."""
    with _hosted() as now, tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        end = START + 60 * minutes
        wanted = [_longest()] if longest else list(PRESETS["hero"].lanes())
        visitors: list[Honest] = []
        busy: list[tuple[float, int]] = []
        number, asked = 0, dict[int, float]()
        while now[0] < end:
            while busy and busy[0][0] <= now[0]:
                store.end(heapq.heappop(busy)[1], "stopped")
            for _ in range(round(A_SECOND * TICK)):
                number += 1
                try:
                    own = [lane.replace(data_seed=number) for lane in wanted]
                    enqueue(store, own, f"s{number}", address=f"a{number % addresses}" * known)
                except Refused:
                    pass
            if now[0] - START >= EVERY * (len(visitors) + 0.5):
                visitors.append(Honest(now[0]))
            for nth, one in enumerate(visitors):
                if not one.runs and now[0] - asked.get(nth, 0.0) >= RETRY:
                    asked[nth] = now[0]
                    _ask(store, one, nth, known)
            _hand_out(store, busy, now[0])
            for one in [one for one in visitors if one.runs and one.began is None]:
                if not set(one.runs) & set(store.queued()):
                    one.began = now[0]
            now[0] += TICK
        return SimulatedQueue(visitors, now[0])


def _ask(store: Store, one: Honest, nth: int, known: bool) -> None:
    seed = 1_000_000 + nth
    lanes = [lane.replace(data_seed=seed) for lane in PRESETS["hero"].lanes()]
    try:
        one.runs = enqueue(store, lanes, f"h{nth}", address=f"h{nth}" * known)
    except Refused:
        one.refused += 1


def _hand_out(store: Store, busy: list[tuple[float, int]], now: float) -> None:
    """Fill the free slots, as the supervisor does."""
    going = {run for _, run in busy}
    while len(busy) < SHARED.slots:
        order = [run for run in store.queued() if run not in going]
        record = store.run(order[0]) if order else None
        if record is None:
            return
        store.handed(record.id)
        store.set_status(record.id, "running")
        heapq.heappush(busy, (now + estimated_seconds(record.trained), record.id))
        going.add(record.id)


def _longest() -> RunConfig:
    """A run that takes about as long as the server allows."""
    config, size = PRESETS["hero"].lanes()[0], SHARED.steps
    while estimated_seconds(config.replace(steps=size)) > SHARED.seconds:
        size -= 10
    return config.replace(steps=size)


@contextmanager
def _hosted() -> Iterator[list[float]]:
    """Hosted mode, and a queue whose clock says what the list holds."""
    now = [START]

    def clock() -> float:
        return now[0]

    with mock.patch.dict(os.environ, {SWITCH: "1"}), mock.patch.object(queue, "clock", clock):
        yield now
