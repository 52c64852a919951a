"""One reader of the store for each topic, shared by all browsers that watch it.

While a run trains, it reads ten times a second. It reads less often when very many browsers watch,
because each costs the server a message.

All reads together have a limit. Network addresses share it equally, and so do the visitors of one
address. A visitor who watches many different runs slows down only the own charts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .rate_limit import ANYBODY, RateLimit, Watcher
from .snapshot import Snapshot, Topic, in_thread, read_snapshot

TICK_SECONDS = 0.1
SECONDS_EACH = 0.0033
"""Added to the tick for each browser that watches: a hundred browsers get three updates a second."""
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
                await asyncio.sleep(max(0.01, pause(fresh.is_live) - took))
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


def pause(is_live: bool) -> float:
    """Seconds between two reads of a topic, with an open run or without one."""
    watching = sum(channel.watching for channel in _open.values())
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
