"""The socket of a page's charts: numbers go to the browser as they come, past the page's script.

A browser says which runs and probe it shows and what it has of them. It gets the rest, and while a
run is open what is new, ten times a second; less often where very many watch.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Annotated, Any
from urllib.parse import urlsplit

from backend import shared
from lanes import label
from progress import status
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from normviz.catalog import PROBES
from normviz.frames import LaneFrame
from normviz.limits import MAX_LANES, SEEDS
from normviz.player import CARRIED, Look, Sent, View, Walk, message
from normviz.store import Run, StoreError

TICK_SECONDS = 0.1
SECONDS_EACH = 0.005
"""Of a tick for each browser that is watching: what one costs, with room for the page itself."""
IDLE_SECONDS = 1.0

Count = Annotated[int, Field(ge=0, lt=2**53)]
Repeats = Annotated[list[Count], Field(max_length=SEEDS)]
log = logging.getLogger(__name__)


class Request(BaseModel):
    """What a browser asks for."""

    runs: Annotated[list[Count | None], Field(min_length=1, max_length=MAX_LANES)]
    probe: str = Field(pattern=f"^({'|'.join(PROBES.keys())})$")
    dark: bool = False
    linear: bool = False
    view: View = "heat"
    repeats: Annotated[list[Repeats], Field(max_length=MAX_LANES)] = []
    have: list[tuple[Count, Count]] = []


_watching: set[WebSocket] = set()


async def numbers(socket: WebSocket) -> None:
    """Serve one browser until it leaves. Pages of other sites are turned away."""
    origin = socket.headers.get("origin")  # "null" in a page that was given none of its own
    if origin is not None and urlsplit(origin).netloc != socket.headers.get("host"):
        await socket.close(1008)
        return
    await socket.accept()
    _watching.add(socket)
    serving: asyncio.Task[None] | None = None
    try:
        while True:
            text = (await socket.receive()).get("text")
            if text is None:  # bytes, or the end
                break
            if serving is not None:
                serving.cancel()
            serving = asyncio.create_task(_serve(socket, text))
    except WebSocketDisconnect:
        pass
    finally:
        _watching.discard(socket)
        if serving is not None:
            serving.cancel()


async def _serve(socket: WebSocket, text: str) -> None:
    """Answer one request: once, and then again whenever there is more."""
    try:
        request = Request.model_validate_json(text)
    except ValidationError:
        await socket.close(1008)
        return
    try:
        await _send(socket, request)
    except StoreError as error:  # the page itself says it
        log.warning("numbers of runs %s: %s", request.runs, error)
        await socket.close(1011)
    except (WebSocketDisconnect, RuntimeError):
        pass  # it left while a message was on its way
    except Exception:
        log.exception("numbers of runs %s", request.runs)
        await socket.close(1011)  # the browser tries again


async def _send(socket: WebSocket, request: Request) -> None:
    sent, before = Sent(list(request.have)), ""
    while True:
        began = time.monotonic()
        out = await run_in_threadpool(_look, request, sent)
        if (now := json.dumps(out, separators=(",", ":"), allow_nan=False)) != before:
            await socket.send_text(now)
            before = now
        busy = out.get("live", False)
        pause = max(TICK_SECONDS, SECONDS_EACH * len(_watching)) if busy else IDLE_SECONDS
        await asyncio.sleep(max(0.01, pause - (time.monotonic() - began)))


def _look(request: Request, sent: Sent) -> dict[str, Any]:
    """What is new in the runs since the last look."""
    back = shared()

    def frame(index: int, run: Run, probe: str = request.probe) -> LaneFrame:
        return back.frames.lane(run, label(index, run.config), probe)

    asked = ((i, number) for i, number in enumerate(request.runs) if number is not None)
    runs = [(i, run) for i, number in asked if (run := back.store.run(number)) is not None]
    more = dict(enumerate(request.repeats))
    repeats = [
        [r for n in more.get(i, []) if (r := back.store.run(n)) is not None] for i, _ in runs
    ]
    frames = [frame(i, run) for i, run in runs]
    others = [[frame(i, r) for r in some] for (i, _), some in zip(runs, repeats, strict=True)]
    every = list(dict.fromkeys([run for _, run in runs] + [r for some in repeats for r in some]))
    out: dict[str, Any] = {"status": status(back.frames, every, back.backend.silent())}
    if frames:
        look = Look(request.dark, request.linear, request.view)
        live = any(run.is_open for run in every)
        walks = [
            Walk(run.config, {key: frame(i, run, key) for key in CARRIED})
            for i, run in runs
            if request.view == "walk"
        ]
        out |= message(frames, sent, live=live, look=look, repeats=others, walks=walks)
    return out
