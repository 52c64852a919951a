"""What came of a load: the phases that were measured, and the table that is printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .crowd import Seen
from .weigh import Weight


@dataclass
class Phase:
    """A stretch of time with so many watchers.

    rate      training steps a second of both lanes together
    server, clients, others   cores used by the page's server, by the visitors, and by what is not ours
    """

    watchers: int
    seconds: float
    rate: float
    server: float
    clients: float
    others: float
    seen: Seen
    weights: list[Weight]


@dataclass
class Load:
    """All that was measured: phases without and with watchers in turns, and one with few."""

    phases: list[Phase]
    few: Phase
    queue: int
    churn: float

    @property
    def watched(self) -> list[Phase]:
        return self.phases[1::2]

    def kept(self) -> list[float]:
        """Of each watched phase the training rate as a share of that just before and after."""
        rates = [phase.rate for phase in self.phases]
        return [2 * b / (a + c) for a, b, c in zip(rates, rates[1:], rates[2:], strict=False)][::2]


def table(load: Load) -> str:
    """The table, one line a figure, with what it was measured beside."""
    watched = load.watched
    seen = [phase.seen for phase in watched]
    rates = [rate for one in seen for rate in one.rates]
    opened = [seconds for one in seen for seconds in one.interactive]
    kept = load.kept()
    rows = [
        ("visitors held", f"{min(one.watching for one in seen)} of {watched[0].watchers}"),
        ("updates a second at each, median", f"{median(rates):.1f}" if rates else "none"),
        ("updates a second, slowest visitor", f"{min(rates):.1f}" if rates else "none"),
        ("longest pause between two, s", f"{max(max(one.gaps, default=0) for one in seen):.1f}"),
        ("new visitor: page usable after, s", _spread(opened)),
        ("training throughput kept", f"{median(kept):.0%} ({min(kept):.0%} to {max(kept):.0%})"),
        ("server, share of one core", _share([phase.server for phase in watched])),
        ("visitors, share of one core", _share([phase.clients for phase in watched])),
        ("all else, share of one core", _share([phase.others for phase in load.phases])),
        *_memory(load),
        ("visits that failed", str(sum(len(one.failures) for one in seen))),
    ]
    first = load.phases[0]
    head = (
        f"{watched[0].watchers} watchers of one duel of two lanes, {load.queue} runs queued behind it, "
        f"{load.churn:g} visitors a second replaced; {len(watched)} rounds of {first.seconds:.0f} s "
        f"watched between as long unwatched; {os.cpu_count()} cores for server, training, visitors"
    )
    failures = sorted({text for one in seen for text in one.failures})
    return "\n".join([head, *(f"  {name:38}{value}" for name, value in rows), *failures[:5]])


def _memory(load: Load) -> list[tuple[str, str]]:
    """Memory with few sessions and with all, and how it went over time."""
    few, many = load.few.weights, [w for phase in load.watched for w in phase.weights]
    both = [*few, *many]
    torch = "; PyTorch loaded" if any(one.torch for one in both) else "; PyTorch not loaded"
    third = max(1, len(many) // 3)
    first, last = (median(w.server for w in part) for part in (many[:third], many[-third:]))
    return [
        (f"server with {load.few.watchers} sessions, MiB", f"{_most(few, 'server')}{torch}"),
        (f"server with {load.watched[0].watchers} sessions, MiB", _most(many, "server")),
        ("  first third of that time, last third", f"{first:.0f}, {last:.0f}"),
        ("supervisor and its workers, MiB", _most(both, "training")),
        ("all of NormViz, MiB", _most(both, "all")),
    ]


def _most(weights: Sequence[Weight], name: str) -> str:
    return f"{max(getattr(one, name) for one in weights):.0f}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "nobody came"
    return f"{median(values):.2f} (worst of {len(values)}: {max(values):.2f})"


def _share(values: Sequence[float]) -> str:
    return f"{median(values):.0%}"
