"""A limit on how often something happens in a second, which all visitors share. A visitor may be ahead of
it by some seconds (`burst`).

Network addresses share it equally, and so do the visitors of one address. A visitor who asks too often
waits, and nobody else does.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

POLL_SECONDS = 0.5
"""A waiting caller checks again after this time: another visitor may have come to the same topic."""


class Watcher(NamedTuple):
    """A visitor, by network address and by cookie. Browsers without cookies are one visitor."""

    address: str = ""
    visitor: str = ""


ANYBODY = Watcher()


class RateLimit:
    """Lets so many calls a second pass, those of all visitors together."""

    ACTIVE_SECONDS = 2.0
    """A visitor has a share for this time after the last call."""

    def __init__(self, a_second: float, burst: float = 0.0) -> None:
        self.a_second, self.burst = a_second, burst
        self._next: dict[Watcher, float] = {}
        """When each visitor's next call may pass, on the monotonic clock."""

    def take(self, watchers: list[Watcher]) -> float:
        """Seconds until a call of one of the watchers may pass; 0 if it passes now, and then it counts."""
        now = time.monotonic()
        self._next = {who: at for who, at in self._next.items() if at > now - self.ACTIVE_SECONDS}
        payer = min(watchers, key=lambda who: self._next.get(who, 0.0), default=ANYBODY)
        after = max(now, self._next.get(payer, 0.0))
        if (wait := after - now - self.burst) > 0:
            return wait
        active = {*self._next, payer}
        addresses = {who.address for who in active}
        here = sum(who.address == payer.address for who in active)
        self._next[payer] = after + len(addresses) * here / self.a_second
        return 0.0

    async def wait(self, watchers: list[Watcher]) -> None:
        """Wait until a call of one of the watchers passes. More watchers may join meanwhile."""
        while (wait := self.take(watchers)) > 0:
            await asyncio.sleep(min(wait, POLL_SECONDS))
