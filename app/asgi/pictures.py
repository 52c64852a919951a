"""A chart of the page as a file: drawn on this server by Vega, at the visitor's step (not smoothed)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from normviz import charts
from normviz.catalog import PROBES
from normviz.charts.palette import paper
from normviz.export import picture
from normviz.limits import MAX_LANES, SEEDS
from normviz.player import charts_at
from normviz.store import StoreError

from ..session import visitor
from ..session.backend import shared
from ..session.duel import label
from .numbers_socket import is_here

KINDS = {"png": "image/png", "svg": "image/svg+xml"}
ONE = asyncio.Semaphore(1)
"""A picture takes about a second of a core: they wait for each other."""
MAX_WAITING = 8
"""So many may wait, one of each visitor; who comes then is asked to come again."""
LONGEST = 1000
"""Characters of a list of runs."""
SAFE = {"X-Content-Type-Options": "nosniff"}
_here: set[Request] = set()
_waiting: set[str | None] = set()


def _numbers(text: object) -> object:
    return [int(part) if part else None for part in _checked(text).split(",")]


def _groups(text: object) -> object:
    return [[int(part) for part in group.split(",") if part] for group in _checked(text).split(";")]


def _checked(text: object) -> str:
    if len(str(text)) > LONGEST:
        raise ValueError(f"{len(str(text))} characters are given, allowed are {LONGEST}")
    return str(text)


Number = Annotated[int, Field(ge=0, lt=2**53)]


class Asked(BaseModel):
    """What an address asks for: the chart `chart` of the runs at step `cursor`."""

    runs: Annotated[
        list[Number | None], BeforeValidator(_numbers), Field(min_length=1, max_length=MAX_LANES)
    ]
    chart: str = Field(pattern="^(loss|bars|ratio|lines|heat[0-3])$")
    kind: str = Field(pattern="^(png|svg)$")
    probe: str = Field(pattern=f"^({'|'.join(PROBES.keys())})$")
    cursor: int = Field(0, ge=0, le=10**6)
    dark: bool = False
    linear: bool = False
    repeats: Annotated[
        list[Annotated[list[Number], Field(max_length=SEEDS)]],
        BeforeValidator(_groups), Field(max_length=MAX_LANES),
    ] = []  # fmt: skip


async def pictures(request: Request) -> Response:
    """The picture, or a sentence that says why there is none."""
    if _is_elsewhere(request):
        return _told(
            "Pictures are drawn for this server's own pages alone: open the duel there.", 403
        )
    if len(_here) > MAX_WAITING:
        return _told("Too many pictures are asked for at once: try again in a few seconds.", 503, 5)
    _here.add(request)
    try:
        return await _picture(request)
    finally:
        _here.discard(request)


def _is_elsewhere(request: Request) -> bool:
    """Whether a page of another site asks, which would spend this server's time on its visitors."""
    origin = request.headers.get("origin")
    other = origin is not None and not is_here(origin, request.headers.get("host"))
    return other or request.headers.get("sec-fetch-site") == "cross-site"


def _told(sentence: str, status: int, again: int | None = None) -> Response:
    more = {} if again is None else {"Retry-After": str(again)}
    return PlainTextResponse(sentence, status, {**SAFE, **more})


async def _picture(request: Request) -> Response:
    twice = [k for k in request.query_params if len(request.query_params.getlist(k)) > 1]
    if twice:
        return _told(f"No picture of this: {twice[0][:40]} is given twice, allowed is once.", 400)
    who = visitor.named(request.cookies)
    if who in _waiting:
        return _told(
            "A picture that you asked for waits already: try again when it is here.", 503, 5
        )
    try:
        asked = Asked.model_validate(dict(request.query_params))
        async with _turn(who):
            content = await run_in_threadpool(_draw, asked)
    except StoreError as error:
        return _told(f"No picture of this now: {error}.", 503, 5)
    except (ValueError, LookupError) as error:
        fields = "; ".join(
            f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in _parts(error)
        )
        return _told(f"No picture of this: {fields}.", 400)
    name = f"normviz-{asked.chart}-step{asked.cursor}.{asked.kind}"
    headers = {**SAFE, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=KINDS[asked.kind], headers=headers)


@asynccontextmanager
async def _turn(who: str | None) -> AsyncIterator[None]:
    """This visitor's turn, after those who came before. Who keeps no cookies is one visitor with all
    others who do so."""
    _waiting.add(who)
    try:
        await ONE.acquire()
    finally:
        _waiting.discard(who)
    try:
        yield
    finally:
        ONE.release()


def _parts(error: ValueError | LookupError) -> list[Any]:
    if isinstance(error, ValidationError):
        return [*error.errors()]
    return [{"loc": ("runs",), "msg": str(error.args[0])}]


def _draw(asked: Asked) -> bytes:
    back = shared()
    found = [
        (i, run)
        for i, number in enumerate(asked.runs)
        if number is not None and (run := back.store.run(number)) is not None
    ]
    if not found:
        raise LookupError("there is no such run here")
    more = dict(enumerate(asked.repeats))
    lanes = [
        back.frames.lane(run, label(i, run.config, bool(more.get(i))), asked.probe)
        for i, run in found
    ]
    repeats = [
        [
            back.frames.lane(run, label(i, run.config), asked.probe)
            for number in more.get(i, [])
            if (run := back.store.run(number)) is not None
        ]
        for i, _ in found
    ]
    look = {"dark": asked.dark, "linear": asked.linear}
    drawn = charts_at(lanes, asked.cursor, repeats=repeats, **look)
    if asked.chart not in drawn:
        raise LookupError(f"these lanes have no chart {asked.chart}")
    return picture(
        drawn[asked.chart](), "svg" if asked.kind == "svg" else "png",
        look=charts.look(asked.dark), background=paper(asked.dark),
        apart=True,
    )  # fmt: skip
