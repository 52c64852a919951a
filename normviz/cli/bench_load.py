"""The load test: how many visitors a server holds while one duel trains and other runs are queued.

`measure` runs it on a real server. The visitors are WebSocket clients in one process (`app/crowd.py`) at
the workers' priority. Real visitors would bring their own cores, so the
table lists the clients' CPU time as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from types import TracebackType
from typing import Any

import psutil

from ..config import RunConfig, estimated_seconds
from ..lessons.presets import PRESETS
from ..links import encode
from ..runs.store import Store
from .bench_server import Server, Weight, below, busy, cpu, served, wait_for, weigh

SAMPLE_SECONDS = 5.0
FEW = 20
"""Numbers of sessions at which memory is reported."""

SETTLE_SECONDS = 1.0
COME_SECONDS = 0.25
"""Seconds between two arrivals, as when a class opens a link."""


def duel(seconds: float) -> tuple[RunConfig, ...]:
    """The hero preset with enough steps, and if needed blocks, to last that long by estimate. Raises
    ConfigError for longer than a run may take."""
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
    with served() as server, Crowd(server.url, encode(lanes)) as crowd:
        crowd.say(per_second=max(1 / COME_SECONDS, 2 * churn))
        runs = _start(server.store, lanes, queue, crowd)
        probe = Probe(server, runs, crowd)
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
    wait_for(lambda: all(_steps(store, run) for run in runs), "the duel did not begin to train")
    return runs


def _steps(store: Store, run: int) -> int:
    return len(store.losses(run))


class Probe:
    """Measures one phase after another on one server."""

    def __init__(self, server: Server, runs: list[int], crowd: Crowd) -> None:
        self.server, self.runs, self.crowd = server, runs, crowd

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
            weights.append(weigh(self.server.process))
        after, observed = self._counts(), self.crowd.mark()
        self.crowd.say(churn=0.0)
        took, *used = (b - a for a, b in zip(before, after, strict=True))
        steps, server, clients, workers, machine = (number / took for number in used)
        others = max(0.0, machine - server - clients - workers)
        return Phase(took, steps, server, clients, others, observed, weights)

    def _counts(self) -> tuple[float, ...]:
        """Seconds, steps, and CPU seconds of server, visitors, workers and the whole machine."""
        store, server = self.server.store, self.server.process
        open_ = [store.run(run) for run in self.runs]
        if not all(run is not None and run.is_open for run in open_):
            raise RuntimeError("the watched duel has ended: ask for fewer seconds or rounds")
        steps = sum(_steps(store, run) for run in self.runs)
        workers = sum(map(cpu, below(server)))
        return time.perf_counter(), steps, cpu(server), self.crowd.cpu(), workers, busy()


# The client side of the process that simulates the visitors.

NICE = 10
"""The same priority as the workers', so training and visitors share a core equally."""

PATIENCE_SECONDS = 300.0
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Observed:
    """What the visitors saw since the last mark.

    watching     visitors with a usable page; coming: visitors that still wait for it
    rates, gaps  of each visitor, while its duel trained: updates per second, and the longest pause between
                 two in seconds
    interactive  seconds until the page was usable, of each new visitor
    failures     visits that ended unexpectedly, as sentences
    late         longest scheduling delay of the visitors' own process, in seconds
    clicks       seconds until the page had rendered again, of each click
    """

    watching: int
    coming: int
    rates: list[float]
    gaps: list[float]
    interactive: list[float]
    failures: list[str]
    late: float
    clicks: list[float] = field(default_factory=list)


class Crowd:
    """Visitors of one server that all open the same query string."""

    def __init__(self, url: str, query: str) -> None:
        self.process = psutil.Popen(
            [sys.executable, "-m", "normviz.app.crowd", url, query],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.process.communicate()
        self.process.wait(30)

    def say(self, **words: Any) -> None:
        """Send a command to the visitors' process."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def mark(self) -> Observed:
        """Everything observed since the last mark. Raises RuntimeError if the process has ended."""
        assert self.process.stdout is not None
        self.say(mark=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the visitors' process has ended")
        return Observed(**json.loads(line))

    def reach(self, watchers: int) -> list[float]:
        """Wait until exactly `watchers` watch; returns each new visitor's seconds until a usable page.

        Raises TimeoutError if the server does not serve so many.
        """
        self.say(watchers=watchers)
        until, opened = time.monotonic() + PATIENCE_SECONDS, []
        while True:
            observed = self.mark()
            opened += observed.interactive
            if observed.watching == watchers:
                return opened
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{observed.watching} of {watchers} visitors have a page after {PATIENCE_SECONDS:g} s; "
                    f"{'; '.join(observed.failures[:3])}"
                )
            time.sleep(POLL_SECONDS)

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        return cpu(self.process)


# The results, and the table that is printed.


@dataclass
class Phase:
    """A time span in which either all visitors watch the charts or none does.

    rate      training steps per second of both lanes together
    server, clients, others   cores used by the page's server, by the visitors, and by other processes
    """

    seconds: float
    rate: float
    server: float
    clients: float
    others: float
    observed: Observed
    weights: list[Weight]


@dataclass
class Load:
    """The whole load test.

    opened   seconds until a usable page, for each visitor while all arrive
    few      a phase with few watchers; `phases`: with all of them, alternately unwatched and watched
    """

    watchers: int
    queue: int
    churn: float
    opened: list[float]
    few: Phase
    phases: list[Phase]

    @property
    def watched(self) -> list[Phase]:
        """The phases with all watchers."""
        return self.phases[1::2]

    def shares(self) -> list[float]:
        """For each watched phase, its training rate as a share of the mean of the phases before and after."""
        rates = [phase.rate for phase in self.phases]
        return [2 * b / (a + c) for a, b, c in zip(rates, rates[1:], rates[2:], strict=False)][::2]


def table(load: Load) -> str:
    """The table, one figure per line, with the setting of the test."""
    watched, few = load.watched, load.few
    observed = [phase.observed for phase in watched]
    rates = [rate for view in observed for rate in view.rates]
    opened = [seconds for view in observed for seconds in view.interactive]
    failures = [text for view in (few.observed, *observed) for text in view.failures]
    rows = [
        (
            "visitors held",
            f"{min(view.watching + view.coming for view in observed)} of {load.watchers}",
        ),
        ("updates a second at each", spread(rates, low=True, digits=1)),
        (
            "longest pause between two, s",
            f"{max(max(view.gaps, default=0) for view in observed):.1f}",
        ),
        ("new visitor, page usable after, s", spread(opened)),
        ("the same while everybody comes, s", spread(load.opened)),
        ("training throughput kept", _range(load.shares())),
        ("server, share of one core", f"{median(phase.server for phase in watched):.0%}"),
        ("visitors, share of one core", f"{median(phase.clients for phase in watched):.0%}"),
        ("all else, share of one core", f"{median(phase.others for phase in load.phases):.0%}"),
        *_memory(load),
        ("visits that failed", str(len(failures))),
    ]
    head = (
        f"{load.watchers} watchers of one duel of two lanes, {load.queue} runs queued after it, "
        f"{load.churn:g} visitors a second replaced; {len(watched)} phases of {watched[0].seconds:.0f} s "
        "alternating with phases in which the pages are open and the charts hidden; "
        f"{os.cpu_count()} cores for server, training and visitors"
    )
    return "\n".join([head, *(f"  {a:40}{b}" for a, b in rows), *sorted(set(failures))[:5]])


def _memory(load: Load) -> list[tuple[str, str]]:
    """Memory with few sessions and with all."""
    few, many = load.few.weights, [w for phase in load.phases for w in phase.weights]
    torch = any(weight.torch for weight in (*few, *many))
    return [
        (f"server, {len(load.few.observed.rates)} sessions, MiB", most([w.server for w in few])),
        (f"server, {load.watchers} sessions, MiB", most([w.server for w in many])),
        ("server has loaded PyTorch", "yes" if torch else "no"),
        ("supervisor and its workers, MiB", most([w.training for w in (*few, *many)])),
        ("all of NormViz, MiB", most([w.all for w in (*few, *many)])),
    ]


def most(values: Sequence[float]) -> str:
    """The largest, rounded to a whole number."""
    return f"{max(values):.0f}"


def _range(shares: Sequence[float]) -> str:
    return f"{median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"


def spread(values: Sequence[float], low: bool = False, digits: int = 2) -> str:
    """Median and worst."""
    if not values:
        return "no data"
    worst = min(values) if low else max(values)
    return f"{median(values):.{digits}f} (worst of {len(values)}: {worst:.{digits}f})"
