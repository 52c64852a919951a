"""The page that trains in the visitor's browser, where the operator has put it into the data folder.

`normviz export-site DATA/live --live` writes it. The Duel page offers it where a run waits in the queue or
was refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from normviz.browser.link import live_link, model_file
from normviz.config import RunConfig
from normviz.home import FolderError
from normviz.runs.store import StoreError

from ..session.backend import opened

LIVE = "normviz/live"
"""The path of the folder on this server."""
PAGE = "live.html"
NAME = re.compile(r"[\w-]+\.(?:html|js|bin|wasm|png)")


async def live_file(request: Request) -> Response:
    """A file of the folder."""
    path = await run_in_threadpool(_file, request.path_params["name"])
    if path is None:
        return PlainTextResponse("This server has no such file.", 404)
    return FileResponse(path, headers={"Cache-Control": "no-cache"})


def _file(name: str) -> Path | None:
    try:
        path = opened().store.folder / "live" / name
    except (StoreError, FolderError):
        return None
    return path if NAME.fullmatch(name) and path.is_file() else None


def address(lanes: Sequence[RunConfig], folder: Path) -> str | None:
    """The address on this server at which a browser trains these lanes itself; None where the data folder
    has no such page, or the page does not have these settings."""
    query, live = live_link(lanes), folder / "live"
    files = (PAGE, *map(model_file, lanes))
    if query is None or not all((live / name).is_file() for name in files):
        return None
    return f"/{LIVE}/{PAGE}?{query}"
