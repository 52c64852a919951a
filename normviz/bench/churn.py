"""A shared server over a long time, while visitors come and go and one duel follows another.

Hosted mode is on: each duel is as long as its limits allow and belongs to another visitor. New visitors
open the link of the duel that trains. The table shows whether memory still grows at the end.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from ..config import RunConfig
from ..duel.presets import PRESETS
from ..hosted import LIMITS, SWITCH
from ..limits import estimated_seconds
from ..links import encode
from ..runs.store import Store, retention
from .browser import serving
from .click import READY_SECONDS, wait_for
from .load import Crowd, Observed, most, spread
from .weigh import MIB, Weight, weigh

SAMPLE_SECONDS = 5.0
PARTS = 6
"""Parts of the time, to see whether memory still grows at the end."""
SHARE = 0.95
"""Share of the estimated seconds that a shared server allows for a run."""


@dataclass
class Churned:
    """The measurement; `stored` is the size of the runs at the end, in MiB."""

    minutes: float
    duels: int
    observed: Observed
    stored: float = 0.0
    weights: list[Weight] = field(default_factory=list)


def measure(watchers: int, per_second: float, minutes: float) -> str:
    """Hold `watchers` visitors, of whom `per_second` are replaced per second; returns a table.

    Raises TimeoutError if the server does not serve so many visitors.
    """
    command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as home,
        serving([*command, "--data", home], "--port", {SWITCH: "1"}) as (url, server),
        Crowd(url, encode(duel(0))) as crowd,
    ):
        crowd.say(per_second=max(4.0, 2 * per_second))
        duels = Duels(Store(Path(home)), crowd)
        crowd.reach(1)  # the first visitor starts the supervisor
        wait_for(duels.has_begun, READY_SECONDS)
        crowd.reach(watchers)
        crowd.say(churn=per_second)
        crowd.mark()
        weights = list[Weight]()
        until = time.monotonic() + 60 * minutes
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, SAMPLE_SECONDS))
            weights.append(weigh(server))
            duels.go_on()
        stored = retention.size(duels.store) / MIB
        it = Churned(minutes, duels.number, crowd.mark(), stored, weights)
        return table(it, watchers, per_second)


def duel(number: int) -> tuple[RunConfig, ...]:
    """The hero preset with another seed, and as many steps as a shared server's time limit allows."""
    lanes = [lane.replace(steps=LIMITS.steps, init_seed=number) for lane in PRESETS["hero"].lanes()]
    share = SHARE * LIMITS.seconds / max(estimated_seconds(lane) for lane in lanes)
    steps = int(LIMITS.steps * min(1.0, share))
    return tuple(lane.replace(steps=steps) for lane in lanes)


class Duels:
    """One duel after another, each of a new visitor; `number` counts them."""

    def __init__(self, store: Store, crowd: Crowd) -> None:
        self.store, self.crowd = store, crowd
        self.number = 0
        self._begin()

    def _begin(self) -> None:
        lanes = duel(self.number)
        self.number += 1
        self.runs = [self.store.enqueue(lane, visitor=f"class {self.number}") for lane in lanes]
        self.crowd.say(query=encode(lanes))

    def has_begun(self) -> bool:
        """Whether all lanes have recorded steps."""
        return all(len(self.store.losses(run)) for run in self.runs)

    def go_on(self) -> None:
        """Queue the next duel if all lanes have ended."""
        found = [self.store.run(run) for run in self.runs]
        if not any(run is not None and run.is_open for run in found):
            self._begin()


def table(it: Churned, watchers: int, per_second: float) -> str:
    """The table, one figure per line."""
    part = max(1, len(it.weights) // PARTS)
    parts = [it.weights[at : at + part] for at in range(0, part * PARTS, part)]
    memory = ", ".join(f"{median(w.server for w in one):.0f}" for one in parts if one)
    torch = any(one.torch for one in it.weights)
    rows = [
        ("visitors who came", f"{len(it.observed.interactive):,}, to {it.duels} duels in a row"),
        ("visits that failed", str(len(it.observed.failures))),
        (f"server in {PARTS} parts of the time, MiB", memory),
        ("server has loaded PyTorch", "yes" if torch else "no"),
        ("supervisor and its workers, MiB", most([w.training for w in it.weights])),
        ("all of NormViz, MiB", most([w.all for w in it.weights])),
        ("stored runs, MiB", f"{it.stored:.0f}"),
        ("new visitor, page usable after, s", spread(it.observed.interactive)),
        ("the visitors' own delay, at most, s", f"{it.observed.late:.2f}"),
    ]
    head = (
        f"{it.minutes:g} min of a shared server (hosted mode) with {watchers} watchers, {per_second:g} "
        f"of them a second replaced; {os.cpu_count()} cores for server, training and visitors"
    )
    failures = sorted(set(it.observed.failures))[:5]
    return "\n".join([head, *(f"  {a:40}{b}" for a, b in rows), *failures])
