"""What came of a load: the phases that were measured, and the table that is printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .crowd import Seen
from .weigh import Weight

PARTS = 6
"""Of a long phase: enough to see whether memory still grows at its end."""


@dataclass
class Phase:
    """A stretch of time in which everybody looked, or nobody did.

    rate      training steps a second of both lanes together
    server, clients, others   cores used by the page's server, by the visitors, and by what is not ours
    """

    seconds: float
    rate: float
    server: float
    clients: float
    others: float
    seen: Seen
    weights: list[Weight]


@dataclass
class Long:
    """The minutes after the phases, in which visitors come and go from duel to duel."""

    minutes: float
    duels: int
    seen: Seen
    weights: list[Weight]


@dataclass
class Load:
    """All that was measured.

    opened   seconds until the page of each could be used, while everybody came
    few      a phase with few watchers; `phases` with all of them, unwatched and watched in turns
    long     what followed, if anything did
    """

    watchers: int
    queue: int
    churn: float
    opened: list[float]
    few: Phase
    phases: list[Phase]
    long: Long | None = None

    @property
    def watched(self) -> list[Phase]:
        return self.phases[1::2]

    def kept(self) -> list[float]:
        """Of each watched phase the training rate as a share of that just before and after."""
        rates = [phase.rate for phase in self.phases]
        return [2 * b / (a + c) for a, b, c in zip(rates, rates[1:], rates[2:], strict=False)][::2]


def table(load: Load) -> str:
    """The table, one line a figure, with what it was measured beside."""
    watched, few = load.watched, load.few
    seen = [phase.seen for phase in watched]
    rates = [rate for one in seen for rate in one.rates]
    opened = [seconds for one in seen for seconds in one.interactive]
    failures = [text for one in (few.seen, *seen) for text in one.failures]
    said = [*failures, *(load.long.seen.failures if load.long else ())]
    rows = [
        ("visitors held", f"{min(one.watching + one.coming for one in seen)} of {load.watchers}"),
        ("updates a second at each", _spread(rates, low=True, digits=1)),
        ("longest pause between two, s", f"{max(max(one.gaps, default=0) for one in seen):.1f}"),
        ("new visitor, page usable after, s", _spread(opened)),
        ("the same while everybody comes, s", _spread(load.opened)),
        ("training throughput kept", _kept(load.kept())),
        ("server, share of one core", f"{median(phase.server for phase in watched):.0%}"),
        ("visitors, share of one core", f"{median(phase.clients for phase in watched):.0%}"),
        ("all else, share of one core", f"{median(phase.others for phase in load.phases):.0%}"),
        *_memory(load),
        ("visits that failed", str(len(failures))),
        *(_long(load.long) if load.long else ()),
    ]
    head = (
        f"{load.watchers} watchers of one duel of two lanes, {load.queue} runs queued behind it, "
        f"{load.churn:g} visitors a second replaced; {len(watched)} phases of {watched[0].seconds:.0f} s "
        "in turns with phases in which the pages are open and nobody looks at the charts; "
        f"{os.cpu_count()} cores for server, training and visitors"
    )
    return "\n".join([head, *(f"  {a:40}{b}" for a, b in rows), *sorted(set(said))[:5]])


def _memory(load: Load) -> list[tuple[str, str]]:
    """Memory with few sessions and with all, and how it went over time."""
    few, many = load.few.weights, [w for phase in load.phases for w in phase.weights]
    torch = any(one.torch for one in (*few, *many))
    return [
        (f"server, {len(load.few.seen.rates)} sessions, MiB", _most([w.server for w in few])),
        (f"server, {load.watchers} sessions, MiB", _most([w.server for w in many])),
        ("server has loaded PyTorch", "yes" if torch else "no"),
        ("supervisor and its workers, MiB", _most([w.training for w in (*few, *many)])),
        ("all of NormViz, MiB", _most([w.all for w in (*few, *many)])),
    ]


def _long(long: Long) -> list[tuple[str, str]]:
    """What became of the server while visitors came and went for long."""
    part = max(1, len(long.weights) // PARTS)
    weights = [long.weights[at : at + part] for at in range(0, part * PARTS, part)]
    memory = ", ".join(f"{median(w.server for w in one):.0f}" for one in weights if one)
    came = f"{len(long.seen.interactive)} came, to {long.duels} duels"
    return [
        (f"then {long.minutes:g} min of coming and going", came),
        (f"  server in {PARTS} parts of that time, MiB", memory),
        ("  all of NormViz, MiB", _most([w.all for w in long.weights])),
        ("  page usable after, s", _spread(long.seen.interactive)),
        ("  visits that failed", str(len(long.seen.failures))),
    ]


def _most(values: Sequence[float]) -> str:
    return f"{max(values):.0f}"


def _kept(shares: Sequence[float]) -> str:
    return f"{median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"


def _spread(values: Sequence[float], low: bool = False, digits: int = 2) -> str:
    """Median and worst."""
    if not values:
        return "nothing was seen"
    worst = min(values) if low else max(values)
    return f"{median(values):.{digits}f} (worst of {len(values)}: {worst:.{digits}f})"
