"""Closes the sessions of pages that were left, and gives their memory back.

Streamlit keeps such a session so that a page can connect again. It forgets one without closing its event
loop, which holds three file descriptors, and its uploaded files.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from streamlit import runtime

from .tuning import trim

SWEEP_SECONDS = 2.0
TRIM_SECONDS = 20.0
"""Between two returns of memory to the operating system."""


@asynccontextmanager
async def closing(after: float | None) -> AsyncIterator[None]:
    """Close left sessions while the server runs, `after` so many seconds or as many as Streamlit says."""
    if after is None:
        after = float(st.get_option("server.disconnectedSessionTTL"))
    sweeping = asyncio.create_task(_sweep(after))
    try:
        yield
    finally:
        sweeping.cancel()


async def _sweep(after: float) -> None:
    sessions = Sessions(after)
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
    """The sessions of this server, and since when each has no page: `after` so many seconds it is closed."""

    def __init__(self, after: float) -> None:
        self.after = after
        self._known: dict[str, Any] = {}
        self._left: dict[str, float] = {}

    def sweep(self) -> int:
        """Close the sessions whose time is over, and those that Streamlit has forgotten; how many."""
        server, now, closed = runtime.get_instance(), time.monotonic(), 0
        stored = {info.session.id: info.session for info in server._session_mgr.list_sessions()}
        self._known |= stored
        for name, session in [*self._known.items()]:
            if server.is_active_session(name):
                self._left.pop(name, None)
                continue
            left = self._left.setdefault(name, now)
            if name in stored and now - left < self.after:
                continue
            server.close_session(name)
            session.shutdown()
            del self._known[name], self._left[name]
            closed += 1
        return closed
