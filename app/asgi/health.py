"""`/healthz`: 200 while supervisor and store work, else 503, both with a report as JSON.

A request starts the supervisor if none runs, as a visitor's page does. So the first answer of a new
server is 503, and so is the first answer after the supervisor has died.
"""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from normviz.execution.health import Health, health_of, unreadable
from normviz.home import FolderError
from normviz.runs.store import StoreError

from ..session.backend import shared
from ..session.policy import policy


async def healthz(request: Request) -> Response:
    """The server's health. Leaves out the messages of failed runs."""
    del request
    health = await run_in_threadpool(_read)
    answer = health.as_json()
    answer["store"] = policy().without_paths(answer["store"])
    if census := answer["census"]:
        del census["failures"]
    return JSONResponse(
        answer, 200 if health.is_well else 503, headers={"Cache-Control": "no-store"}
    )


def _read() -> Health:
    try:
        backend = shared()
        return health_of(backend.store, backend.supervisor.silent())
    except (StoreError, FolderError) as error:
        return unreadable(error)
