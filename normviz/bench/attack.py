"""What visitors of a shared server feel while one network address asks too much of it.

`measure` starts a hosted server on the loopback address, visitors that click and watch a duel train, and
one attack after another (`app/bench/attackers.py`). Every visitor and the attacker state a network address
of their own, as a proxy would.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median

from ..home import shipped
from ..hosted import SWITCH
from ..links import encode
from ..runs.store import Store
from .browser import serving
from .churn import Duels, duel
from .click import READY_SECONDS, wait_for
from .load import NICE, Crowd, Observed
from .weigh import weigh

NONE = "none"
"""The same without an attack, to compare with."""
ATTACKS = (NONE, "frames", "fragments", "values", "idle", "visits", "topics", "renders", "uploads")
PAUSE_SECONDS = 3.0
"""Between two clicks of a visitor."""
CHURN = 0.5
"""Visitors a second who leave and are replaced: their pages tell how soon a page is usable."""
SAMPLE_SECONDS = 1.0
MEMORY_MIB, PAGE_SECONDS, UPDATES, BACK_SHARE = 700, 2.0, 2.0, 1.1
"""The goals: resident memory of all of NormViz, seconds until a page is usable (95 of 100), updates a
second of the visitor who gets fewest, and memory after the attack as a share of what it was before it, or
of what the server has at that time without an attack: visitors alone fill its caches."""


@dataclass(frozen=True)
class Attacked:
    """One attack. Memory is resident, in MiB, of the server and all of NormViz."""

    name: str
    seen: Observed
    server_before: float
    server_peak: float
    peak: float
    server_after: float
    server_calm: float = 0.0
    """What it had after the same time without an attack, if that was measured."""

    @property
    def wrong(self) -> list[str]:
        """The goals that were missed."""
        seen, found = self.seen, list[str]()
        if seen.failures:
            found.append(f"{len(seen.failures)} cut off ({max(set(seen.failures), key=len)[:90]})")
        if _most(seen.interactive) > PAGE_SECONDS:
            found.append("pages late")
        if _most(seen.clicks) > PAGE_SECONDS:
            found.append("clicks late")
        if not seen.rates or min(seen.rates) < UPDATES:
            found.append("charts slow")
        if self.peak > MEMORY_MIB:
            found.append("memory high")
        if self.server_after > BACK_SHARE * max(self.server_before, self.server_calm):
            found.append("memory not back")
        return found


def measure(names: Sequence[str], visitors: int, seconds: float, after: float) -> list[Attacked]:
    """Run each attack for `seconds`, and weigh the server `after` seconds later.

    Raises TimeoutError if the visitors get no page even without an attack.
    """
    found = list[Attacked]()
    for name in sorted(names, key=ATTACKS.index):
        one = _measure(name, visitors, seconds, after)
        calm = found[0].server_after if found and found[0].name == NONE else 0.0
        found.append(replace(one, server_calm=calm))
    return found


def _measure(name: str, visitors: int, seconds: float, after: float) -> Attacked:
    command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as home,
        serving([*command, "--data", home], "--port", {SWITCH: "1"}) as (url, server),
        Crowd(url, encode(duel(0))) as crowd,
    ):
        crowd.say(per_second=8.0, pause=PAUSE_SECONDS)
        duels = Duels(Store(Path(home)), crowd)
        crowd.reach(1)  # the first visitor starts the supervisor
        wait_for(duels.has_begun, READY_SECONDS)
        crowd.reach(visitors)
        crowd.say(churn=CHURN)
        _watch(duels, server, max(2.0, seconds / 6))
        before = weigh(server).server
        crowd.mark()
        with attacking(url, name):
            weights = _watch(duels, server, seconds)
            seen = crowd.mark()
        later = _watch(duels, server, after)[-1]
        peak = max(weights, key=lambda one: one[1])
        return Attacked(name, seen, before, max(one[0] for one in weights), peak[1], later[0])


def _watch(duels: Duels, server: int, seconds: float) -> list[tuple[float, float]]:
    """Weigh server and all of NormViz for some time, while one duel follows another."""
    weights, until = list[tuple[float, float]](), time.monotonic() + seconds
    while not weights or time.monotonic() < until:
        time.sleep(SAMPLE_SECONDS)
        weight = weigh(server)
        weights.append((weight.server, weight.all))
        duels.go_on()
    return weights


@contextmanager
def attacking(url: str, name: str) -> Iterator[None]:
    """An attack in a process of its own, as nice as training."""
    if name == NONE:
        yield
        return
    script = shipped("app") / "bench" / "attackers.py"
    process = subprocess.Popen([sys.executable, str(script), url, name], stdin=subprocess.PIPE)
    os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def _most(values: Sequence[float]) -> float:
    """The value that 95 of 100 do not exceed; infinite without values."""
    return sorted(values)[ceil(0.95 * len(values)) - 1] if values else float("inf")


def table(found: Sequence[Attacked], visitors: int, seconds: float, after: float) -> str:
    """The table, one attack a line."""
    heads = ("attack", "page, s", "click, s", "updates/s", "cut off", "server", "all", "after")
    rows = [
        (
            one.name,
            _pair(one.seen.interactive),
            _pair(one.seen.clicks),
            f"{median(one.seen.rates):.1f} ({min(one.seen.rates):.1f})" if one.seen.rates else "-",
            str(len(one.seen.failures)),
            f"{one.server_before:.0f} to {one.server_peak:.0f}",
            f"{one.peak:.0f}",
            f"{one.server_after:.0f}",
            "; ".join(one.wrong) or "held",
        )
        for one in found
    ]
    lines = [(*heads, "outcome"), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    body = [
        "  ".join([*(cell.ljust(n) for cell, n in zip(line, widths, strict=False)), line[-1]])
        for line in lines
    ]
    head = (
        f"{visitors} visitors of a shared server (hosted mode) who watch a duel and click every "
        f"{PAUSE_SECONDS:g} s, {CHURN:g} a second replaced; each attack of one network address for "
        f"{seconds:g} s. page: of a new visitor, until usable; click: until rendered; median (95 of 100). "
        f"updates of the charts: median (worst visitor). Memory in MiB: server before and at its "
        f"peak, all of NormViz at its peak, server {after:g} s after. {os.cpu_count()} cores for "
        "server, training, visitors and attacker"
    )
    return "\n".join([head, *body])


def _pair(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({_most(values):.2f})" if values else "-"
