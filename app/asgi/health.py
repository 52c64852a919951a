"""`/healthz`: 200 while supervisor and store are well, else 503; both with what is known as JSON.

Asking starts the supervisor where there is none, as a visitor would: the first answer of a new server
is 503, and so is the one after a supervisor's death.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from normviz.health import Health, look, unreadable
from normviz.home import FolderError
from normviz.hosted import Misconfigured
from normviz.store import StoreError

from ..session.backend import shared


async def healthz(request: Request) -> Response:
    """How this server is, without what failures say."""
    del request
    health = await run_in_threadpool(_look)
    said = health.as_json()
    if census := said["census"]:
        del census["failures"]
    return JSONResponse(said, 200 if health.is_well else 503, headers={"Cache-Control": "no-store"})


def _look() -> Health:
    try:
        back = shared()
        return look(back.store, back.backend.silent())
    except (StoreError, FolderError, Misconfigured) as error:
        return unreadable(error)
