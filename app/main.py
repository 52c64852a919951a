"""What Streamlit runs: the page, and beside it the player's script, the socket of its numbers, and what
a container asks to know whether all is well."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from importlib import import_module
from math import inf
from pkgutil import iter_modules

import search_path  # noqa: F401 (before all that imports normviz)
import streamlit as st
from normviz.app import streamlit_parts, views
from normviz.app.asgi import left_sessions, log_limit, websocket_limits
from normviz.app.asgi.connection_limit import SHARED_MESSAGE, Connections
from normviz.app.asgi.first_paint import PICTURE, FirstPaint, open_store, picture
from normviz.app.asgi.health import healthz
from normviz.app.asgi.live_page import LIVE, live_file
from normviz.app.asgi.moved import moved_pages
from normviz.app.asgi.numbers_socket import numbers
from normviz.app.asgi.own_hosts import OwnHosts
from normviz.app.asgi.tuning import tune
from normviz.app.asgi.visitor_cookie import VisitorCookie
from normviz.app.session.policy import policy
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute

from normviz.player import SCRIPTS, version
from normviz.policy import Misconfigured
from normviz.studies.maps.link import standard
from normviz.studies.maps.results import shipped_cells
from normviz.studies.maps.standard import MAPS

OPENING_SECONDS = 3.0
"""The server answers once the store is open, or after this time without it."""
KEPT = {"Cache-Control": "max-age=31536000, immutable", "Vary": "Accept-Encoding"}


@lru_cache(maxsize=1)
def _packed() -> dict[str, bytes]:
    """The scripts by file name, gzip-compressed once for all requests."""
    return {
        f"{name}-{version(text)}": gzip.compress(text.encode()) for name, text in SCRIPTS.items()
    }


def _script(request: Request) -> Response:
    """Answer with the player or Vega. The URL holds a hash of the content, so browsers cache it for good."""
    if (packed := _packed().get(request.path_params["script"])) is None:
        return PlainTextResponse("This script belongs to another release: reload the page.", 404)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers = {**KEPT, "Content-Encoding": "gzip"}
        return Response(packed, media_type="text/javascript", headers=headers)
    return Response(gzip.decompress(packed), media_type="text/javascript", headers=KEPT)


def prepare_pages() -> None:
    """Import what draws the pages, and read the map that Maps opens with: the first visitor would else wait
    for both."""
    for view in iter_modules(views.__path__):
        import_module(f"{views.__name__}.{view.name}.page")
    shipped_cells(standard(MAPS.keys()[0]).grid)


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """What the server does beside its answers, from its start to its end."""
    log_limit.install()
    loop = asyncio.get_running_loop()
    opening = loop.run_in_executor(None, open_store)
    loop.run_in_executor(None, prepare_pages)
    with suppress(TimeoutError):  # else the first page that is opened would have no still
        await asyncio.wait_for(asyncio.shield(opening), OPENING_SECONDS)
    async with left_sessions.closing():
        yield


try:
    allowed = policy()
except Misconfigured as error:
    sys.exit(f"normviz: {error}")
tune()
streamlit_parts.ask_no_other_host()
changed = streamlit_parts.changed()
for part in changed:
    print(f"normviz: {streamlit_parts.CHANGED.format(part)}", file=sys.stderr, flush=True)
if streamlit_parts.SOCKETS not in changed:
    websocket_limits.install()
serving = {
    "lifespan": lifespan,
    "routes": [
        Route("/healthz", healthz),
        *moved_pages(),
        Route("/normviz/{script}.js", _script),
        Route(f"/{PICTURE}", picture),
        Route(f"/{LIVE}/{{name}}", live_file),
        WebSocketRoute("/normviz/numbers", numbers),
    ],
    "middleware": [
        *([] if allowed.is_shared else [Middleware(OwnHosts)]),  # a shared one has a public name
        Middleware(Connections, inf if allowed.own_text else SHARED_MESSAGE),
        Middleware(VisitorCookie),
        Middleware(FirstPaint),
    ],
}
app = st.App("page.py", **serving)
