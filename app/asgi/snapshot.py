"""Some runs at one moment, for all browsers that look at them in the same way.

Who saw an earlier moment gets the difference; it is made and written as text once, however many
browsers wait for it.
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

from normviz.frames import LaneFrame
from normviz.player import CARRIED, Have, Look, Sent, View, Walk, message
from normviz.store import Run

from ..session.backend import Shared, shared
from ..session.duel import label
from ..session.progress import status

SPREAD_EACH, LONGEST_SPREAD = 0.04, 4.0
"""Seconds for each browser that watches, and at most: over so many they ask for the page again when a
run ends, so that a class does not keep who comes next waiting: to draw it takes the server about as long."""
ALONE = 3
"""So few browsers ask at once."""
TEXTS = 8
"""Texts that a snapshot keeps, for those who come from one earlier moment; of more, the one that was
asked for longest ago is written anew."""

T = TypeVar("T")
_numbers = count()
_threads = ThreadPoolExecutor(3, thread_name_prefix="normviz-look")


async def apart(work: Callable[..., T], *given: object) -> T:
    """What `work` returns, from one of a few threads for all who watch: however many they are, files
    and the health check have theirs."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work, *given)


@dataclass(frozen=True)
class Topic:
    """What a browser looks at. Those with equal topics share snapshots."""

    runs: tuple[int | None, ...]
    probe: str
    dark: bool = False
    linear: bool = False
    view: View = "heat"
    repeats: tuple[tuple[int, ...], ...] = ()
    earlier: tuple[str, ...] = ()
    """Of each lane whose run is of settings that the page shows no more, which ones; else empty."""


@dataclass(frozen=True)
class Lanes:
    """The runs of a topic as they are now: what `message` takes."""

    frames: list[LaneFrame]
    repeats: list[list[LaneFrame]]
    walks: list[Walk]
    live: bool


@dataclass(eq=False)
class Snapshot:
    """A moment. `lanes` is None where no run of the topic is there; so many were `watching`."""

    topic: Topic
    status: dict[str, Any]
    lanes: Lanes | None
    watching: int = 1
    number: int = field(default_factory=lambda: next(_numbers))
    sent: Sent = field(default_factory=Sent)
    """What a browser has that has seen this."""
    texts: OrderedDict[object, str] = field(default_factory=OrderedDict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_live(self) -> bool:
        """Whether steps will follow."""
        return self.lanes is not None and self.lanes.live

    @property
    def shape(self) -> object:
        """What differs from one moment to the next."""
        lanes = self.lanes
        every = (
            [] if lanes is None else [*lanes.frames, *(f for some in lanes.repeats for f in some)]
        )
        return self.status, self.is_live, [(len(f.loss), len(f.probe_steps)) for f in every]

    async def text(self, before: Snapshot | tuple[Have, ...]) -> str:
        """What a browser lacks that saw `before`, or that has so much of each lane."""
        seen = before if isinstance(before, Snapshot) else self._sendable(before)
        name = seen.number if isinstance(seen, Snapshot) else seen
        async with self.turn:
            if name not in self.texts:
                had = seen.sent if isinstance(seen, Snapshot) else Sent(list(seen))
                self.texts[name] = await apart(self._write, copy.copy(had))
                if len(self.texts) > TEXTS:
                    self.texts.popitem(last=False)
            self.texts.move_to_end(name)
            return self.texts[name]

    def _sendable(self, have: tuple[Have, ...]) -> tuple[Have, ...]:
        """What a browser says it has, if the lanes hold so much; else nothing, and it gets all."""
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
            look = Look(asked.dark, asked.linear, asked.view)
            out |= message(
                it.frames, sent, live=it.live, look=look, repeats=it.repeats, walks=it.walks
            )
        self.sent = sent  # whoever sees this moment has the same, wherever they came from
        return json.dumps(out, separators=(",", ":"), allow_nan=False)


def look(topic: Topic) -> Snapshot:
    """The topic's runs as the store has them now."""
    back = shared()
    runs = [(i, run) for i, run in enumerate(_stored(back, topic.runs)) if run is not None]
    more = dict(enumerate(topic.repeats))
    others = [[r for r in _stored(back, more.get(i, ())) if r is not None] for i, _ in runs]
    every = list(dict.fromkeys([run for _, run in runs] + [r for some in others for r in some]))
    said = status(back.frames, every, back.backend.silent(), back.backend.stuck is not None)
    earlier = dict(enumerate(topic.earlier))
    if not runs:
        return Snapshot(topic, said, None)

    def frame(index: int, run: Run, probe: str = topic.probe) -> LaneFrame:
        name = label(index, run.config, bool(more.get(index)))
        return back.frames.lane(run, name, probe, earlier.get(index, ""))

    frames = [frame(i, run) for i, run in runs]
    repeats = [[frame(i, r) for r in some] for (i, _), some in zip(runs, others, strict=True)]
    walks = [
        Walk(run.config, {key: frame(i, run, key) for key in CARRIED})
        for i, run in runs
        if topic.view == "walk"
    ]
    live = any(run.is_open for run in every)
    return Snapshot(topic, said, Lanes(frames, repeats, walks, live))


def _stored(back: Shared, numbers: tuple[int | None, ...]) -> list[Run | None]:
    return [None if number is None else back.store.run(number) for number in numbers]
