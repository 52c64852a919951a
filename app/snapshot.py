"""Some runs at one moment, for all browsers that look at them in the same way.

Who saw an earlier moment gets the difference; it is made and written as text once, however many
browsers wait for it.
"""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from backend import Shared, shared
from lanes import label
from progress import status
from starlette.concurrency import run_in_threadpool

from normviz.frames import LaneFrame
from normviz.player import CARRIED, Have, Look, Sent, View, Walk, message
from normviz.store import Run

SPREAD_EACH, LONGEST_SPREAD = 0.03, 3.0
"""Seconds for each browser that watches, and at most: over so many they ask for the page again when a
run ends, so that a class does not keep who comes next waiting."""
ALONE = 3
"""So few browsers ask at once."""

_numbers = count()


@dataclass(frozen=True)
class Topic:
    """What a browser looks at. Those with equal topics share snapshots."""

    runs: tuple[int | None, ...]
    probe: str
    dark: bool = False
    linear: bool = False
    view: View = "heat"
    repeats: tuple[tuple[int, ...], ...] = ()


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
    texts: dict[object, str] = field(default_factory=dict)
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
        async with self.turn:
            name = before.number if isinstance(before, Snapshot) else ("have", before)
            if name not in self.texts:
                had = before.sent if isinstance(before, Snapshot) else Sent(list(before))
                self.texts[name] = await run_in_threadpool(self._write, copy.copy(had))
            return self.texts[name]

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
    said = status(back.frames, every, back.backend.silent())
    if not runs:
        return Snapshot(topic, said, None)

    def frame(index: int, run: Run, probe: str = topic.probe) -> LaneFrame:
        return back.frames.lane(run, label(index, run.config), probe)

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
