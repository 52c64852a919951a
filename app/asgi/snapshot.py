"""A snapshot of some runs, shared by all browsers that watch the same topic.

A browser that has an earlier snapshot gets the difference. Each difference is made and serialised once
for all browsers.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from normviz.duel.names import lane_name
from normviz.player import CARRIED, ChartOptions, Have, Sent, View, message
from normviz.runs import Recording
from normviz.runs.lane import LETTERS, Lane
from normviz.runs.store import Run

from ..session.backend import SharedBackend, shared
from ..session.progress import status

SPREAD_EACH, LONGEST_SPREAD = 0.04, 4.0
"""Seconds for each browser that watches, and at most. When a run ends, the browsers spread their reruns
over this time, about as long as the server takes to render them, so that a new visitor need not wait."""
ALONE = 3
"""Up to this many browsers rerun at once."""
TEXTS = 8
"""Differences that a snapshot caches, one for each earlier snapshot; the least recently used goes first."""

T = TypeVar("T")
_numbers = count()
_threads = ThreadPoolExecutor(3, thread_name_prefix="normviz-snapshot")


async def in_thread(work: Callable[..., T], *given: object) -> T:
    """Run `work` in one of a few threads of its own, so that files and the health check keep theirs."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work, *given)


@dataclass(frozen=True)
class Topic:
    """What a browser shows. Browsers with equal topics share snapshots."""

    runs: tuple[int | None, ...]
    probe: str
    dark: bool = False
    linear: bool = False
    view: View = "heat"
    repeats: tuple[tuple[int, ...], ...] = ()
    earlier: tuple[str, ...] = ()
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
    every = list(dict.fromkeys([*(some[0] for some in runs.values()), *others]))
    said = status(
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
    return Snapshot(topic, said, lanes, live)


def _stored(backend: SharedBackend, topic: Topic) -> dict[int | None, Run]:
    """The stored runs of a topic by number, each read once."""
    numbers = dict.fromkeys([*topic.runs, *(n for some in topic.repeats for n in some)])
    found = {n: backend.store.run(n) for n in numbers if n is not None}
    return {n: run for n, run in found.items() if run is not None}
