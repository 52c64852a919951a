"""The number of visitors that a server holds: a class watches one duel while other runs are queued.

The server is the real one. Visitors are WebSocket clients in one process
(`app/bench/load_visitors.py`) at the workers' priority. Real visitors would bring their own cores, so
the table lists the clients' CPU time as well.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from ..config import RunConfig
from ..limits import estimated_seconds
from ..links import encode
from ..presets import PRESETS
from ..store import Store
from .browser import serving
from .click import READY_SECONDS, wait_for
from .crowd import Crowd
from .load_words import Load, Phase, table
from .weigh import Weight, below, busy, cpu, weigh

SAMPLE_SECONDS = 5.0
FEW = 20
"""Numbers of sessions at which memory is reported."""

SETTLE_SECONDS = 1.0
COME_SECONDS = 0.25
"""Seconds between two arrivals, as when a class opens a link."""


def duel(seconds: float) -> tuple[RunConfig, ...]:
    """The hero preset with enough steps, and if needed blocks, to last that long by estimate."""
    lanes = [lane.replace(steps=20_000) for lane in PRESETS["hero"].lanes()]
    while estimated_seconds(lanes[0]) < seconds and lanes[0].depth < 96:
        lanes = [lane.replace(depth=lane.depth + 6) for lane in lanes]
    return tuple(lanes)


def measure(watchers: int, queue: int, seconds: float, rounds: int, churn: float) -> str:
    """Phases of `seconds` each, without and with watchers in alternation; `churn` visitors per second
    are replaced.

    Raises RuntimeError if the duel ends before the last phase, TimeoutError if the server does not serve
    so many visitors.
    """
    os.environ.pop("NORMVIZ_HOSTED", None)  # hosted mode's limits would end the duel
    lanes = duel(2 * ((seconds + SETTLE_SECONDS) * (2 * rounds + 1) + COME_SECONDS * watchers + 60))
    command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as home,
        serving([*command, "--data", home], "--port") as (url, server),
        Crowd(url, encode(lanes)) as crowd,
    ):
        crowd.say(per_second=max(1 / COME_SECONDS, 2 * churn))
        store = Store(Path(home))
        runs = _start(store, lanes, queue, crowd)
        probe = Probe(store, runs, server, crowd)
        opened = crowd.reach(FEW)
        few = probe.phase(True, seconds)
        opened += crowd.reach(watchers)
        phases = [probe.phase(i % 2 == 1, seconds, churn) for i in range(2 * rounds + 1)]
        return table(Load(watchers, queue, churn, opened, few, phases))


def _start(store: Store, lanes: tuple[RunConfig, ...], queue: int, crowd: Crowd) -> list[int]:
    """Start the duel and queue other runs after it. The first visitor starts the supervisor."""
    runs = [store.enqueue(lane) for lane in lanes]
    for seed in range(1, queue + 1):
        store.enqueue(PRESETS["hero"].lanes()[seed % 2].replace(init_seed=seed))
    crowd.reach(1)
    wait_for(lambda: all(_steps(store, run) for run in runs), READY_SECONDS)
    return runs


def _steps(store: Store, run: int) -> int:
    return len(store.losses(run))


class Probe:
    """Measures one phase after another on one server."""

    def __init__(self, store: Store, runs: list[int], server: int, crowd: Crowd) -> None:
        self.store, self.runs, self.server, self.crowd = store, runs, server, crowd

    def phase(self, watched: bool, seconds: float, churn: float = 0.0) -> Phase:
        """Show or hide the charts at all visitors, and measure for `seconds`."""
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

    def _counts(self) -> tuple[float, ...]:
        """Seconds, steps, and CPU seconds of server, visitors, workers and the whole machine."""
        open_ = [self.store.run(run) for run in self.runs]
        if not all(run is not None and run.is_open for run in open_):
            raise RuntimeError("the watched duel has ended: ask for fewer seconds or rounds")
        steps = sum(_steps(self.store, run) for run in self.runs)
        workers = sum(cpu(pid) for pid in below(self.server))
        return time.perf_counter(), steps, cpu(self.server), self.crowd.cpu(), workers, busy()
