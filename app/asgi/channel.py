"""One reader of the store for each topic, shared by all browsers that watch it.

While a run trains, it reads ten times a second. It reads less often when very many browsers watch,
because each costs the server a message, and when many different runs are watched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .snapshot import Snapshot, Topic, apart, look

TICK_SECONDS = 0.1
SECONDS_EACH = 0.0033
"""Added to the tick for each browser that watches: a hundred browsers get three updates a second."""
SLOWEST_SECONDS = 0.4
"""The longest tick, so that charts still move with any number of browsers."""
IDLE_SECONDS = 1.0
LOOKS_A_SECOND = 40
"""Reads of the store a second, for all topics together."""


class Channel:
    """The snapshots of one topic, while at least one browser watches it."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.watching = 0
        self.now: Snapshot | None = None
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

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
                began = time.monotonic()
                fresh = await apart(look, self.topic)
                fresh.watching = self.watching
                if self.now is None or fresh.shape != self.now.shape:
                    self.now = fresh
                    self._wake()
                took = time.monotonic() - began
                await asyncio.sleep(max(0.01, pause(fresh.is_live) - took))
        finally:
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        self._reading.cancel()


_open: dict[Topic, Channel] = {}


def pause(is_live: bool) -> float:
    """Seconds between two reads of a topic, with an open run or without one."""
    watching = sum(channel.watching for channel in _open.values())
    tick = min(SLOWEST_SECONDS, max(TICK_SECONDS, SECONDS_EACH * watching))
    return max(tick if is_live else IDLE_SECONDS, len(_open) / LOOKS_A_SECOND)


@contextmanager
def watching(topic: Topic) -> Iterator[Channel]:
    """The topic's channel, for one browser. It closes when the last browser leaves."""
    if topic not in _open:
        _open[topic] = Channel(topic)
    channel = _open[topic]
    channel.watching += 1
    try:
        yield channel
    finally:
        channel.watching -= 1
        if channel.watching == 0:
            channel.close()
            if _open.get(topic) is channel:
                del _open[topic]
