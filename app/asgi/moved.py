"""Addresses of pages that are now part of another page: they lead on to it."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

MOVED = {"anatomy": "catalogue", "cost": "choose?section=cost"}
"""The page, and the part of it, that shows what the page at an old path did."""


def moved_pages() -> list[Route]:
    """A route for each old path. It keeps the settings of a link."""
    return [Route(f"/{path}", _moved) for path in MOVED]


def _moved(request: Request) -> Response:
    there = urlsplit(MOVED[request.url.path.rpartition("/")[2]])
    query = "&".join(filter(None, (there.query, request.url.query)))
    return RedirectResponse(urlunsplit(there._replace(query=query)), 308)
