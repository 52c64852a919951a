"""Closes the sessions that Streamlit has forgotten, and gives their memory back.

Streamlit keeps the session of a page that was left for `server.disconnectedSessionTTL`, so that the page can
connect again. Then it forgets it without closing its event loop, which holds three file descriptors.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from streamlit import runtime

from .tuning import trim

SWEEP_SECONDS = 2.0
TRIM_SECONDS = 20.0
"""Between two returns of memory to the operating system."""


@asynccontextmanager
async def closing() -> AsyncIterator[None]:
    """Close left sessions while the server runs."""
    sweeping = asyncio.create_task(_sweep())
    try:
        yield
    finally:
        sweeping.cancel()


async def _sweep() -> None:
    sessions = Sessions()
    closed, trimmed = 0, time.monotonic()
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        if runtime.exists():
            closed += sessions.sweep()
        if closed and time.monotonic() - trimmed > TRIM_SECONDS:
            gc.collect()
            trim()
            closed, trimmed = 0, time.monotonic()


class Sessions:
    """The sessions of this server."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def sweep(self) -> int:
        """Close the sessions that Streamlit has forgotten; how many."""
        listed = runtime.get_instance()._session_mgr.list_sessions()
        self._known |= (stored := {one.session.id: one.session for one in listed})
        forgotten = [name for name in self._known if name not in stored]
        for name in forgotten:
            self._known.pop(name).shutdown()
        return len(forgotten)
