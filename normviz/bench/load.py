"""How many visitors a server holds: a class that watches one duel train, with a queue behind it.

The server is the real one. Visitors are WebSocket clients in a process of their own (`app/load_visitors.py`),
at the workers' priority: they need cores that visitors from elsewhere would bring along, so what
they use is said beside what they cost.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from math import ceil
from pathlib import Path

from ..config import RunConfig
from ..limits import estimated_seconds
from ..links import encode
from ..presets import PRESETS
from ..store import Store
from .browser import serving
from .click import READY_SECONDS, wait_for
from .crowd import Crowd
from .load_words import Load, Long, Phase, table
from .weigh import Weight, below, busy, cpu, weigh

SAMPLE_SECONDS = 5.0
FEW = 20
"""Sessions at which memory is stated."""

SETTLE_SECONDS = 1.0
COME_SECONDS = 0.25
"""Between two arrivals: a class that opens a link."""

EACH_SECONDS = 600.0
"""By estimate, of the duels that follow each other while visitors come and go for long."""


def duel(seconds: float) -> tuple[RunConfig, ...]:
    """The hero with as many steps, and if need be blocks, as last that long by estimate."""
    lanes = [lane.replace(steps=20_000) for lane in PRESETS["hero"].lanes()]
    while estimated_seconds(lanes[0]) < seconds and lanes[0].depth < 96:
        lanes = [lane.replace(depth=lane.depth + 6) for lane in lanes]
    return tuple(lanes)


def measure(
    watchers: int, queue: int, seconds: float, rounds: int, churn: float, minutes: float = 0.0
) -> str:
    """Phases of `seconds` each without and with watchers in turns; `churn` of them change a second.
    Then the same visitors come and go for so many `minutes`, for what that does to memory.

    Raises RuntimeError where the duel ends before the last phase, TimeoutError where the server
    does not hold so many visitors.
    """
    os.environ.pop("NORMVIZ_HOSTED", None)  # its limits would end what is measured
    lanes = duel(2 * ((seconds + SETTLE_SECONDS) * (2 * rounds + 1) + COME_SECONDS * watchers + 60))
    count = ceil(2 * 60 * minutes / EACH_SECONDS)
    more = [[lane.replace(init_seed=at + 1) for lane in duel(EACH_SECONDS)] for at in range(count)]
    command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as home,
        serving([*command, "--data", home], "--port") as (url, server),
        Crowd(url, encode(lanes)) as crowd,
    ):
        crowd.say(per_second=max(1 / COME_SECONDS, 2 * churn))
        store = Store(Path(home))
        runs = [[store.enqueue(lane) for lane in one] for one in (lanes, *more)]
        for seed in range(1, queue + 1):
            store.enqueue(PRESETS["hero"].lanes()[seed % 2].replace(init_seed=seed))
        crowd.reach(1)  # who starts the supervisor
        wait_for(lambda: all(_steps(store, run) for run in runs[0]), READY_SECONDS)
        probe = Probe(store, runs[0], server, crowd)
        opened = crowd.reach(FEW)
        few = probe.phase(True, seconds)
        opened += crowd.reach(watchers)
        phases = [probe.phase(i % 2 == 1, seconds, churn) for i in range(2 * rounds + 1)]
        following = list(zip(runs[1:], map(encode, more), strict=True))
        long = probe.long(minutes, churn, following) if minutes else None
        return table(Load(watchers, queue, churn, opened, few, phases, long))


def _steps(store: Store, run: int) -> int:
    return len(store.losses(run))


class Probe:
    """Measures one phase after another on one server."""

    def __init__(self, store: Store, runs: list[int], server: int, crowd: Crowd) -> None:
        self.store, self.runs, self.server, self.crowd = store, runs, server, crowd

    def phase(self, watched: bool, seconds: float, churn: float = 0.0) -> Phase:
        """Let everybody who is there look or not, and measure for so long."""
        self.crowd.say(looking=watched)
        time.sleep(SETTLE_SECONDS)
        self.crowd.say(churn=churn if watched else 0.0)
        self.crowd.mark()
        before, weights = self._counts(), list[Weight]()
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            time.sleep(min(left, SAMPLE_SECONDS))
            weights.append(weigh(self.server))
        after, seen = self._counts(), self.crowd.mark()
        self.crowd.say(churn=0.0)
        took, *used = (b - a for a, b in zip(before, after, strict=True))
        steps, server, clients, workers, machine = (number / took for number in used)
        others = max(0.0, machine - server - clients - workers)
        return Phase(took, steps, server, clients, others, seen, weights)

    def long(self, minutes: float, churn: float, following: list[tuple[list[int], str]]) -> Long:
        """Let visitors come and go; who comes after a duel's end opens the next one's link."""
        self.crowd.say(looking=True, churn=churn)
        self.crowd.mark()
        began, weights, duels = time.perf_counter(), list[Weight](), 1
        while (took := time.perf_counter() - began) < 60 * minutes:
            time.sleep(min(60 * minutes - took, SAMPLE_SECONDS))
            weights.append(weigh(self.server))
            if following and not self._trains():
                self.runs, query = following.pop(0)
                self.crowd.say(query=query)
                duels += 1
        return Long(minutes, duels, self.crowd.mark(), weights)

    def _trains(self) -> bool:
        found = [self.store.run(run) for run in self.runs]
        return all(run is not None and run.is_open for run in found)

    def _counts(self) -> tuple[float, ...]:
        """Seconds, steps, and CPU seconds of server, visitors, workers and the whole machine."""
        if not self._trains():
            raise RuntimeError("the watched duel has ended: ask for fewer seconds or rounds")
        steps = sum(_steps(self.store, run) for run in self.runs)
        workers = sum(cpu(pid) for pid in below(self.server))
        return time.perf_counter(), steps, cpu(self.server), self.crowd.cpu(), workers, busy()
