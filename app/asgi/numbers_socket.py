"""The WebSocket of a page's charts: numbers reach the browser as they come, without a script run.

A browser names the runs and the probe it shows, and how much it has of them. It gets the rest, then
new numbers as often as its `channel` reads them. A slow browser skips snapshots, and gets their numbers
with the next one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

import streamlit as st
from pydantic import Field, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from normviz.limits import MAX_LANES
from normviz.player import Have
from normviz.runs.store import StoreError

from ..session import network_address, visitor
from .channel import Count, Snapshot, Topic, watching
from .rate_limit import ANYBODY, RateLimit, Watcher

LONGEST = 4096
"""Characters of a request; those of our pages have at most a thousand."""
BETWEEN = 0.05
"""Seconds between two requests of one connection."""
REQUESTS = RateLimit(200)
"""Requests a second of all connections together."""
log = logging.getLogger(__name__)


class Request(Topic):
    """A browser's request: its topic, and what it has of that already."""

    have: Annotated[tuple[tuple[Count, Count], ...], Field(max_length=MAX_LANES)] = ()

    def topic(self) -> Topic:
        """What the browser shows, without what it has already."""
        return Topic(**self.model_dump(exclude={"have"}))


async def numbers(socket: WebSocket) -> None:
    """Serve one browser until it leaves. Refuses pages of other sites."""
    if not _may_come(socket.headers.get("origin"), socket.headers.get("host")):
        await socket.close(1008)
        return
    await socket.accept()
    who = visitor.named(socket.cookies)
    await _answer(socket, Watcher(network_address.of_request(socket.scope), who or ""))


async def _answer(socket: WebSocket, who: Watcher = ANYBODY) -> None:
    """Serve the browser's requests. A new request replaces the one before."""
    serving: asyncio.Task[None] | None = None
    try:
        while True:
            text = (await socket.receive()).get("text")
            if text is None:  # binary data, or the connection was closed
                break
            if serving is not None:
                serving.cancel()
            if len(text) > LONGEST:
                await socket.close(1009, f"a request has up to {LONGEST} characters")
                break
            await REQUESTS.wait([who])
            serving = asyncio.create_task(_serve(socket, text, who))
            await asyncio.sleep(BETWEEN)
    except WebSocketDisconnect:
        pass
    finally:
        if serving is not None:
            serving.cancel()


def _may_come(origin: str | None, host: str | None) -> bool:
    """Whether a page of this origin may read: one of this server, or one that its settings let in, as
    they must where a host puts another name before it. A page without an origin of its own sends "null"."""
    if origin is None or origin.partition("://")[2] == host:
        return True
    return not st.get_option("server.enableCORS") or origin in st.get_option(
        "server.corsAllowedOrigins"
    )


async def _serve(socket: WebSocket, text: str, who: Watcher) -> None:
    """Answer one request: at once, and again whenever there are new numbers."""
    try:
        request = Request.model_validate_json(text)
    except ValidationError:
        await socket.close(1008)
        return
    try:
        await _send(socket, request, who)
    except StoreError as error:  # the page shows the error itself
        log.warning("numbers of runs %s: %s", request.runs, error)
        await socket.close(1011)
    except (WebSocketDisconnect, RuntimeError):
        pass  # the browser left during the send
    except Exception:
        log.exception("numbers of runs %s", request.runs)
        await socket.close(1011)  # the browser connects again


async def _send(socket: WebSocket, request: Request, who: Watcher) -> None:
    """Send the numbers as they come. Where no run is stored, none can come: one answer is enough."""
    before: Snapshot | tuple[Have, ...] = request.have
    seen: Snapshot | None = None
    with watching(request.topic(), who) as channel:
        while seen is None or seen.lanes:
            seen = await channel.after(seen)
            await socket.send_text(await seen.text(before))
            before = seen
