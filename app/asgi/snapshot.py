"""A snapshot of some runs, shared by all browsers that watch the same topic.

A browser that has an earlier snapshot gets the difference. Each difference is made and serialised once
for all browsers.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from normviz.player import CARRIED, ChartOptions, Have, Sent, View, Walk, message
from normviz.runs.frames import LaneFrame
from normviz.runs.store import Run

from ..session.backend import SharedBackend, shared
from ..session.duel import label
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


@dataclass(frozen=True)
class Lanes:
    """The frames of a topic's runs: what `message` takes."""

    frames: list[LaneFrame]
    repeats: list[list[LaneFrame]]
    walks: list[Walk]
    live: bool


@dataclass(eq=False)
class Snapshot:
    """A topic's runs at one moment. `lanes` is None if none is stored; `watching` counts browsers."""

    topic: Topic
    status: dict[str, Any]
    lanes: Lanes | None
    watching: int = 1
    number: int = field(default_factory=lambda: next(_numbers))
    sent: Sent = field(default_factory=Sent)
    """What a browser has after it got this snapshot."""
    texts: OrderedDict[object, str] = field(default_factory=OrderedDict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_live(self) -> bool:
        """Whether a run is open, so that more steps may follow."""
        return self.lanes is not None and self.lanes.live

    @property
    def shape(self) -> object:
        """A value that changes when there are new numbers or a new status."""
        lanes = self.lanes
        every = (
            [] if lanes is None else [*lanes.frames, *(f for some in lanes.repeats for f in some)]
        )
        return self.status, self.is_live, [(len(f.loss), len(f.probe_steps)) for f in every]

    async def text(self, before: Snapshot | tuple[Have, ...]) -> str:
        """The difference, as JSON, for a browser that got `before` or has that much of each lane."""
        seen = before if isinstance(before, Snapshot) else self._sendable(before)
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
        frames = self.lanes.frames if self.lanes else []
        fits = len(have) == len(frames) and all(
            losses <= len(frame.loss) and records <= len(frame.probe_steps)
            for (losses, records), frame in zip(have, frames, strict=True)
        )
        return have if fits else ()

    def _write(self, sent: Sent) -> str:
        spread = min(LONGEST_SPREAD, SPREAD_EACH * self.watching) if self.watching > ALONE else 0
        out: dict[str, Any] = {"status": self.status | ({"spread": spread} if spread else {})}
        if self.lanes is not None:
            it, asked = self.lanes, self.topic
            options = ChartOptions(asked.dark, asked.linear, asked.view)
            out |= message(
                it.frames,
                sent,
                live=it.live,
                options=options,
                repeats=it.repeats,
                walks=it.walks,
            )
        self.sent = sent  # the same for all browsers, whichever snapshot they had before
        return json.dumps(out, separators=(",", ":"), allow_nan=False)


def read_snapshot(topic: Topic) -> Snapshot:
    """Read the topic's runs from the store."""
    backend = shared()
    runs = [(i, run) for i, run in enumerate(_stored(backend, topic.runs)) if run is not None]
    more = dict(enumerate(topic.repeats))
    others = [[r for r in _stored(backend, more.get(i, ())) if r is not None] for i, _ in runs]
    every = list(dict.fromkeys([run for _, run in runs] + [r for some in others for r in some]))
    said = status(
        backend.frames, every, backend.supervisor.silent(), backend.supervisor.stuck is not None
    )
    earlier = dict(enumerate(topic.earlier))
    if not runs:
        return Snapshot(topic, said, None)

    configs = [run.config for _, run in runs]

    def frame(index: int, run: Run, probe: str = topic.probe) -> LaneFrame:
        own = configs if run.config in configs else [run.config]  # a repeat's seeds are its own
        name = label(index, run.config, own, bool(more.get(index)))
        return backend.frames.lane(run, name, probe, earlier.get(index, ""))

    frames = [frame(i, run) for i, run in runs]
    repeats = [[frame(i, r) for r in some] for (i, _), some in zip(runs, others, strict=True)]
    walks = [
        Walk(run.trained, {key: frame(i, run, key) for key in CARRIED})
        for i, run in runs
        if topic.view == "walk" and not any(one.is_observed for _, one in runs)
    ]
    live = any(run.is_open for run in every)
    return Snapshot(topic, said, Lanes(frames, repeats, walks, live))


def _stored(backend: SharedBackend, numbers: tuple[int | None, ...]) -> list[Run | None]:
    return [None if number is None else backend.store.run(number) for number in numbers]
