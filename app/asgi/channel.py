"""Who watches what: one reader of the store for each topic, however many browsers watch it.

While a run is open it looks ten times a second; less often where very many watch, because each of
them costs the server a message, and where many different runs are watched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .snapshot import Snapshot, Topic, apart, look

TICK_SECONDS = 0.1
SECONDS_EACH = 0.0033
"""Of a tick for each browser that watches, so that a class of a hundred has three a second."""
SLOWEST_SECONDS = 0.4
"""However many watch, they see that it moves."""
IDLE_SECONDS = 1.0
LOOKS_A_SECOND = 40
"""At the runs of all topics, however many are open."""


class Channel:
    """The snapshots of one topic, while anybody watches it."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.watching = 0
        self.now: Snapshot | None = None
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def after(self, seen: Snapshot | None) -> Snapshot:
        """The latest snapshot, once it is another than `seen`. Raises what reading the runs raised."""
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
    """Seconds between two looks at a topic, with an open run or without one."""
    watching = sum(channel.watching for channel in _open.values())
    tick = min(SLOWEST_SECONDS, max(TICK_SECONDS, SECONDS_EACH * watching))
    return max(tick if is_live else IDLE_SECONDS, len(_open) / LOOKS_A_SECOND)


@contextmanager
def watching(topic: Topic) -> Iterator[Channel]:
    """The topic's channel, for one browser; it closes when the last one leaves."""
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
