"""The results of a load test: its phases, and the table that is printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .crowd import Seen
from .weigh import Weight


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
    seen: Seen
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
        return self.phases[1::2]

    def kept(self) -> list[float]:
        """For each watched phase, its training rate as a share of the mean of the phases before and after."""
        rates = [phase.rate for phase in self.phases]
        return [2 * b / (a + c) for a, b, c in zip(rates, rates[1:], rates[2:], strict=False)][::2]


def table(load: Load) -> str:
    """The table, one figure per line, with the setting of the test."""
    watched, few = load.watched, load.few
    seen = [phase.seen for phase in watched]
    rates = [rate for one in seen for rate in one.rates]
    opened = [seconds for one in seen for seconds in one.interactive]
    failures = [text for one in (few.seen, *seen) for text in one.failures]
    rows = [
        ("visitors held", f"{min(one.watching + one.coming for one in seen)} of {load.watchers}"),
        ("updates a second at each", spread(rates, low=True, digits=1)),
        ("longest pause between two, s", f"{max(max(one.gaps, default=0) for one in seen):.1f}"),
        ("new visitor, page usable after, s", spread(opened)),
        ("the same while everybody comes, s", spread(load.opened)),
        ("training throughput kept", _kept(load.kept())),
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
    torch = any(one.torch for one in (*few, *many))
    return [
        (f"server, {len(load.few.seen.rates)} sessions, MiB", most([w.server for w in few])),
        (f"server, {load.watchers} sessions, MiB", most([w.server for w in many])),
        ("server has loaded PyTorch", "yes" if torch else "no"),
        ("supervisor and its workers, MiB", most([w.training for w in (*few, *many)])),
        ("all of NormViz, MiB", most([w.all for w in (*few, *many)])),
    ]


def most(values: Sequence[float]) -> str:
    """The largest, rounded to a whole number."""
    return f"{max(values):.0f}"


def _kept(shares: Sequence[float]) -> str:
    return f"{median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"


def spread(values: Sequence[float], low: bool = False, digits: int = 2) -> str:
    """Median and worst."""
    if not values:
        return "no data"
    worst = min(values) if low else max(values)
    return f"{median(values):.{digits}f} (worst of {len(values)}: {worst:.{digits}f})"
