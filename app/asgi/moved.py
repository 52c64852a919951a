"""Addresses of pages that are now part of another page: they lead on to it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

MOVED = {"anatomy": "catalogue"}
"""The page that shows what the page at an old path did."""


def moved_pages() -> list[Route]:
    """A route for each old path. It keeps the settings of a link."""
    return [Route(f"/{path}", _moved) for path in MOVED]


def _moved(request: Request) -> Response:
    page, query = MOVED[request.url.path.rpartition("/")[2]], request.url.query
    return RedirectResponse(f"{page}?{query}" if query else page, 308)
