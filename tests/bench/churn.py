"""A shared server over a long time, while visitors come and go and one duel follows another.

Hosted mode is on: each duel is as long as its limits allow and belongs to another visitor. New visitors
open the link of the duel that trains. The table shows whether memory still grows at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median

import typer

from normviz import RunConfig
from normviz.cli.bench_load import Crowd, most, spread
from normviz.cli.bench_server import MIB, Server, Weight, served, wait_for, weigh
from normviz.config import estimated_seconds
from normviz.lessons.presets import PRESETS
from normviz.links import encode
from normviz.policy import SHARED, SWITCH
from normviz.runs.store import retention

from .kit import cores

SAMPLE_SECONDS = 5.0
PARTS = 6
"""Parts of the time, to see whether memory still grows at the end."""
SHARE = 0.95
"""Share of the estimated seconds that a shared server allows for a run."""


def duel(number: int) -> tuple[RunConfig, ...]:
    """The hero preset with another seed, and as many steps as a shared server's time limit allows."""
    lanes = [lane.replace(steps=SHARED.steps, init_seed=number) for lane in PRESETS["hero"].lanes()]
    share = SHARE * SHARED.seconds / max(estimated_seconds(lane) for lane in lanes)
    steps = int(SHARED.steps * min(1.0, share))
    return tuple(lane.replace(steps=steps) for lane in lanes)


@dataclass
class Shared:
    """A shared server with visitors at an address, and one duel after another; `number` counts them."""

    server: Server
    url: str
    crowd: Crowd
    number: int = 0

    def begin(self) -> None:
        """Queue the next duel, which new visitors open."""
        lanes = duel(self.number)
        self.number += 1
        store, visitor = self.server.store, f"class {self.number}"
        self.runs = [store.enqueue(lane, visitor=visitor) for lane in lanes]
        self.crowd.say(query=encode(lanes))

    def watch(self, seconds: float, every: float) -> list[Weight]:
        """Weigh the server for some time, at least once, while one duel follows another."""
        store, weights, until = self.server.store, list[Weight](), time.monotonic() + seconds
        while not weights or time.monotonic() < until:
            time.sleep(every)
            weights.append(weigh(self.server.process))
            found = [store.run(run) for run in self.runs]
            if not any(run is not None and run.is_open for run in found):
                self.begin()
        return weights


@contextmanager
def shared(
    visitors: int,
    front: Callable[[str], AbstractContextManager[str]] = nullcontext,
    before: Sequence[str] = (),
    **words: float,
) -> Iterator[Shared]:
    """So many visitors on a shared server whose duel trains; `words` go to the visitors' process, `front`
    puts something before the server, and `before` are words before its command.

    Raises TimeoutError if the server does not serve so many.
    """
    with (
        served({SWITCH: "1"}, before) as server,
        front(server.url) as url,
        Crowd(url, encode(duel(0))) as crowd,
    ):
        it = Shared(server, url, crowd)
        crowd.say(**words)
        it.begin()
        crowd.reach(1)  # the first visitor starts the supervisor
        wait_for(
            lambda: all(len(server.store.losses(run)) for run in it.runs),
            "the duel did not begin to train",
        )
        crowd.reach(visitors)
        yield it


def main(watchers: int = 100, per_second: float = 1.0, minutes: float = 30.0) -> None:
    """Hold `watchers` visitors for some minutes, of whom `per_second` are replaced per second."""
    with shared(watchers, per_second=max(4.0, 2 * per_second)) as it:
        it.crowd.say(churn=per_second)
        it.crowd.mark()
        weights = it.watch(60 * minutes, min(SAMPLE_SECONDS, 60 * minutes))
        seen, stored = it.crowd.mark(), retention.size(it.server.store) / MIB
    part = max(1, len(weights) // PARTS)
    parts = [weights[at : at + part] for at in range(0, part * PARTS, part)]
    memory = ", ".join(f"{median(w.server for w in one):.0f}" for one in parts if one)
    print(
        f"{minutes:g} min of a shared server (hosted mode) with {watchers} watchers, {per_second:g} of them "
        f"a second replaced; {cores()}"
    )
    for name, value in {
        "visitors who came": f"{len(seen.interactive):,}, to {it.number} duels in a row",
        "visits that failed": str(len(seen.failures)),
        f"server in {PARTS} parts of the time, MiB": memory,
        "server has loaded PyTorch": "yes" if any(one.torch for one in weights) else "no",
        "supervisor and its workers, MiB": most([w.training for w in weights]),
        "all of NormViz, MiB": most([w.all for w in weights]),
        "stored runs, MiB": f"{stored:.0f}",
        "new visitor, page usable after, s": spread(seen.interactive),
        "the visitors' own delay, at most, s": f"{seen.late:.2f}",
    }.items():
        print(f"  {name:40}{value}")
    for text in sorted(set(seen.failures))[:5]:
        print(text)


if __name__ == "__main__":
    typer.run(main)
