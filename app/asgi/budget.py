"""A number of turns a second that all visitors share.

Network addresses share it equally, and so do the visitors of one address. A visitor who asks for too many
waits, and nobody else does.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

POLL_SECONDS = 0.5
"""Who waits for a turn asks again after this time: another visitor may have come to the same topic."""


class Watcher(NamedTuple):
    """A visitor, by network address and by cookie. Browsers without cookies are one visitor."""

    address: str = ""
    visitor: str = ""


ANYBODY = Watcher()


class Budget:
    """Who may do something when, of which so many a second are allowed to all together."""

    ACTIVE_SECONDS = 2.0
    """A visitor has a share for this time after the last turn."""

    def __init__(self, a_second: float) -> None:
        self.a_second = a_second
        self._next: dict[Watcher, float] = {}
        """When each visitor's next turn is, on the monotonic clock."""

    def take(self, watchers: list[Watcher]) -> float:
        """Seconds until the next turn of one of the watchers; 0 if it is now, and then it is taken."""
        now = time.monotonic()
        self._next = {who: at for who, at in self._next.items() if at > now - self.ACTIVE_SECONDS}
        payer = min(watchers, key=lambda who: self._next.get(who, 0.0), default=ANYBODY)
        if (wait := self._next.get(payer, 0.0) - now) > 0:
            return wait
        active = {*self._next, payer}
        addresses = {who.address for who in active}
        here = sum(who.address == payer.address for who in active)
        self._next[payer] = now + len(addresses) * here / self.a_second
        return 0.0

    async def turn(self, watchers: list[Watcher]) -> None:
        """Wait for the next turn of one of the watchers. Others may come meanwhile."""
        while (wait := self.take(watchers)) > 0:
            await asyncio.sleep(min(wait, POLL_SECONDS))
