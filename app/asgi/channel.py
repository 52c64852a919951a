"""One reader of the store for each topic, shared by all browsers that watch it.

A browser that has an earlier snapshot of the topic gets the difference, which is made and serialised once
for all browsers.

While a run trains, it reads ten times a second. It reads less often when very many browsers watch,
because each costs the server a message.

All reads together have a limit. Network addresses share it equally, and so do the visitors of one
address. A visitor who watches many different runs slows down only their own charts.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field

from normviz.catalog import PROBES
from normviz.limits import MAX_LANES, SEEDS
from normviz.player import CARRIED, ChartOptions, Have, Sent, View, message
from normviz.runs import Recording, Run
from normviz.runs.lane import LETTERS, Lane
from normviz.runs.names import lane_name

from ..session.backend import SharedBackend, shared
from ..session.duel import EARLIER
from ..session.progress import status
from .rate_limit import ANYBODY, RateLimit, Watcher

SPREAD_EACH, LONGEST_SPREAD = 0.04, 4.0
"""Seconds for each browser that watches, and at most. When a run ends, the browsers spread their reruns
over this time, about as long as the server takes to render them, so that a new visitor need not wait."""
ALONE = 3
"""Up to this many browsers rerun at once."""
TEXTS = 8
"""Differences that a snapshot caches, one for each earlier snapshot; the least recently used goes first."""

Count = Annotated[int, Field(ge=0, lt=2**53)]
Repeats = Annotated[tuple[Count, ...], Field(max_length=SEEDS)]
Earlier = Annotated[str, Field(max_length=EARLIER)]
T = TypeVar("T")
_numbers = count()
_threads = ThreadPoolExecutor(3, thread_name_prefix="normviz-snapshot")


async def in_thread(work: Callable[..., T], *given: object) -> T:
    """Run `work` in one of a few threads of its own, so that files and the health check keep theirs."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work, *given)


class Topic(BaseModel, frozen=True):
    """What a browser shows. Browsers with equal topics share snapshots."""

    runs: Annotated[tuple[Count | None, ...], Field(min_length=1, max_length=MAX_LANES)]
    probe: str = Field(pattern=f"^({'|'.join(PROBES.keys())})$")
    dark: bool = False
    linear: bool = False
    view: View = "heat"
    repeats: Annotated[tuple[Repeats, ...], Field(max_length=MAX_LANES)] = ()
    earlier: Annotated[tuple[Earlier, ...], Field(max_length=MAX_LANES)] = ()
    """For each lane: the settings of its run that differ from the page's, in words; else empty."""


@dataclass(eq=False)
class Snapshot:
    """A topic's runs at one moment. `lanes` are those with a stored run; `is_live` says that one is open, so
    that more steps may follow; `watching` counts browsers."""

    topic: Topic
    status: dict[str, Any]
    lanes: tuple[Lane, ...] = ()
    is_live: bool = False
    watching: int = 1
    number: int = field(default_factory=lambda: next(_numbers))
    sent: Sent = field(default_factory=Sent)
    """What a browser has after it got this snapshot."""
    texts: OrderedDict[object, str] = field(default_factory=OrderedDict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def shape(self) -> object:
        """A value that changes when there are new numbers or a new status."""
        steps = [len(run.steps) for lane in self.lanes for run in lane.recordings]
        return self.status, self.is_live, steps

    async def text(self, before: Snapshot | tuple[Have, ...]) -> str:
        """The difference, as JSON, for a browser that got `before` or has that much of each lane."""
        seen = before
        if not isinstance(before, Snapshot):
            seen = await in_thread(self._sendable, before)
        name = seen.number if isinstance(seen, Snapshot) else seen
        async with self.turn:
            if name not in self.texts:
                had = seen.sent if isinstance(seen, Snapshot) else Sent(list(seen))
                self.texts[name] = await in_thread(self._write, copy.copy(had))
                if len(self.texts) > TEXTS:
                    self.texts.popitem(last=False)
            self.texts.move_to_end(name)
            return self.texts[name]

    def _sendable(self, have: tuple[Have, ...]) -> tuple[Have, ...]:
        """What a browser claims to have, if the lanes hold that much; else nothing, so it gets all."""
        fits = len(have) == len(self.lanes) and all(
            losses <= len(lane.recording.losses)
            and records <= len(lane.recording.layers(self.topic.probe).step)
            for (losses, records), lane in zip(have, self.lanes, strict=True)
        )
        return have if fits else ()

    def _write(self, sent: Sent) -> str:
        spread = min(LONGEST_SPREAD, SPREAD_EACH * self.watching) if self.watching > ALONE else 0
        out: dict[str, Any] = {"status": self.status | ({"spread": spread} if spread else {})}
        if self.lanes:
            asked = self.topic
            options = ChartOptions(asked.dark, asked.linear, asked.view)
            out |= message(self.lanes, asked.probe, sent, live=self.is_live, options=options)
        self.sent = sent  # the same for all browsers, whichever snapshot they had before
        return json.dumps(out, separators=(",", ":"), allow_nan=False)


def read_snapshot(topic: Topic) -> Snapshot:
    """Read the topic's runs from the store."""
    backend = shared()
    stored = _stored(backend, topic)
    repeats, earlier = dict(enumerate(topic.repeats)), dict(enumerate(topic.earlier))
    runs = {
        i: [stored[n] for n in dict.fromkeys((own, *repeats.get(i, ()))) if n in stored]
        for i, own in enumerate(topic.runs)
        if own in stored
    }
    others = [run for some in runs.values() for run in some[1:]]
    every = list({run.id: run for run in [*(some[0] for some in runs.values()), *others]}.values())
    status_words = status(
        backend.frames, every, backend.supervisor.silent(), backend.supervisor.stuck is not None
    )
    shown = {topic.probe, *(CARRIED if topic.view == "walk" else ())}
    configs = [some[0].config for some in runs.values()]

    def recording(run: Run, probes: Collection[str] = ()) -> Recording:
        return backend.frames.recording(run).for_charts_of(probes)

    lanes = tuple(
        Lane(
            lane_name(LETTERS[i], some[0].config, configs, bool(repeats.get(i))),
            some[0].config,
            (recording(some[0], shown), *(recording(run) for run in some[1:])),
            earlier.get(i, ""),
        )
        for i, some in runs.items()
    )
    live = any(run.is_open for run in every)
    return Snapshot(topic, status_words, lanes, live)


def _stored(backend: SharedBackend, topic: Topic) -> dict[int | None, Run]:
    """The stored runs of a topic by number, each read once."""
    numbers = dict.fromkeys([*topic.runs, *(n for some in topic.repeats for n in some)])
    runs = {n: backend.store.run(n) for n in numbers if n is not None}
    return {n: run for n, run in runs.items() if run is not None}


TICK_SECONDS = 0.1
SECONDS_EACH = 0.0033
"""Added to the tick for each browser that watches the topic: a hundred get three updates a second."""
SLOWEST_SECONDS = 0.4
"""The longest tick, so that charts still move with any number of browsers."""
IDLE_SECONDS = 1.0
READS_A_SECOND = 40
"""Reads of the store a second, for all topics together."""


class Channel:
    """The snapshots of one topic, while at least one browser watches it."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.watchers: list[Watcher] = []
        self.now: Snapshot | None = None
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def watching(self) -> int:
        """How many browsers watch."""
        return len(self.watchers)

    async def after(self, seen: Snapshot | None) -> Snapshot:
        """Wait for a snapshot newer than `seen`. Raises what reading the runs raised."""
        while self.now is None or self.now is seen:
            if self._reading.done():
                await self._reading
            await self._news.wait()
        return self.now

    async def _read(self) -> None:
        try:
            while True:
                await READS.wait(self.watchers)
                began = time.monotonic()
                fresh = await in_thread(read_snapshot, self.topic)
                fresh.watching = self.watching
                if self.now is None or fresh.shape != self.now.shape:
                    self.now = fresh
                    self._wake()
                took = time.monotonic() - began
                await asyncio.sleep(max(0.01, pause(fresh.is_live, self.watching) - took))
        finally:
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        """Stop reading the store."""
        self._reading.cancel()


READS = RateLimit(READS_A_SECOND)
_open: dict[Topic, Channel] = {}


def pause(is_live: bool, watching: int) -> float:
    """Seconds between two reads of a topic that so many browsers watch, with an open run or without one."""
    tick = min(SLOWEST_SECONDS, max(TICK_SECONDS, SECONDS_EACH * watching))
    return tick if is_live else IDLE_SECONDS


@contextmanager
def watching(topic: Topic, who: Watcher = ANYBODY) -> Iterator[Channel]:
    """The topic's channel, for one browser. It closes when the last browser leaves."""
    if topic not in _open:
        _open[topic] = Channel(topic)
    channel = _open[topic]
    channel.watchers.append(who)
    try:
        yield channel
    finally:
        channel.watchers.remove(who)
        if not channel.watchers:
            channel.close()
            if _open.get(topic) is channel:
                del _open[topic]
