"""The HTML of the pages as a browser and a messenger first get it: title, preview tags, and a still of
the charts, which a visitor sees before Streamlit's script has loaded.

The tags' image and the still are of the stored picture of a duel; no request has one drawn. Streamlit serves
one file for all pages. Where it is not as expected here, it is served as it is.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Awaitable
from functools import lru_cache
from html import escape
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normviz.export import preview
from normviz.home import FolderError, shipped
from normviz.runs.store import StoreError

from ..session import network_address
from ..session.pages import DUEL, NAME, PAGES, asked, tab_title
from ..streamlit_parts import ROOT, TITLE
from .linked_duel import LinkedDuel, find

PICTURE = "normviz/preview.png"
"""The address of the pictures, relative to the server's root."""
SKIP = '<a class="skip" href="#content">Skip to the content</a>'
"""Before all else for a keyboard. Its place is in `visit`."""
PATIENCE = 0.4
"""Seconds that a page waits for the store before it is served without a still."""
LONGEST = 8000
"""Characters of a query that is read."""
log = logging.getLogger(__name__)
PROBLEMS = (StoreError, FolderError, ValueError)


def open_store() -> None:
    """Open the store and read the opening duel, so that the first visitor does not wait for them."""
    try:
        find({})
    except PROBLEMS as error:  # the pages say what is wrong
        log.info("the store is not open yet: %s", error)


class FirstPaint:
    """Middleware that rewrites the HTML of the pages."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        page = asked(scope)
        if page is None:
            await self.app(scope, receive, send)
            return
        about = asyncio.create_task(_about(page, scope))
        # A part of the file, or word that it is unchanged, could not be rewritten.
        left_out = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
        plain = {
            **scope,
            "headers": [header for header in scope["headers"] if header[0] not in left_out],
        }
        await self.app(plain, receive, _Rewriter(scope, send, about).send)


class _Rewriter:
    """Holds back an answer until it is whole, if it is HTML, and rewrites it."""

    def __init__(self, scope: Scope, send: Send, about: Awaitable[tuple[str, str]]) -> None:
        self.scope, self.out, self.about = scope, send, about
        self.start: Message | None = None
        self.body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = Headers(raw=message.get("headers", []))
            is_html = headers.get("content-type", "").startswith("text/html")
            if is_html and message["status"] == 200 and "content-encoding" not in headers:
                self.start = message
                return
        if self.start is None or message["type"] != "http.response.body":
            await self.out(message)
            return
        self.body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = rewritten(self.body, *await self.about)
        headers = MutableHeaders(raw=list(self.start.get("headers", [])))
        for name in ("etag", "last-modified", "accept-ranges"):
            del headers[name]
        headers["cache-control"] = "no-cache"
        headers.add_vary_header("Accept-Encoding")
        if "gzip" in Headers(scope=self.scope).get("accept-encoding", ""):
            body, headers["content-encoding"] = gzip.compress(body, 5), "gzip"
        headers["content-length"] = str(len(body))
        await self.out({**self.start, "headers": headers.raw})
        await self.out({"type": "http.response.body", "body": body})


def rewritten(html: bytes, head: str, still: str) -> bytes:
    """Streamlit's HTML with a title and tags, and a still before its root. HTML of another shape is left
    as it is."""
    title, root, style = TITLE.encode(), ROOT.encode(), _style()
    if html.count(title) != 1 or html.count(root) != 1:
        log.warning("Streamlit's HTML has another shape: pages are served without title and still")
        return html
    before = style + SKIP.encode() + still.encode()
    return html.replace(title, head.encode()).replace(root, before + root)


@lru_cache(maxsize=1)
def _style() -> bytes:
    """The pages' style sheet. It is in the HTML so that nothing is drawn without it and moves when it
    comes; in the body, after Streamlit's own rules."""
    return f"<style>{(shipped('app') / 'style.css').read_text('utf-8')}</style>".encode()


async def _about(page: str, scope: Scope) -> tuple[str, str]:
    """What is put into a page: the title with tags, and the still."""
    request = Request(scope)
    about = PAGES.get(page, DUEL)
    duel = LinkedDuel(NAME if page == "" else about.name, about.words)
    if page in ("", DUEL.path) and (linked := await _linked(request)):
        duel = linked
    image = still = ""
    if duel.picture is not None:
        image = f"{_address(request).removesuffix(page)}{PICTURE}?{duel.query}"
        embedded = request.query_params.get("embed") == "true"
        still = preview.still(duel.lanes, duel.picture, embedded, loss_only=not duel.is_usual)
    tags = preview.tags(duel.title, duel.words, image=image)
    title = NAME if duel.title == NAME else tab_title(duel.title)
    return f"<title>{escape(title)}</title>\n{tags}", still


async def _linked(request: Request) -> LinkedDuel | None:
    """The duel of a request; None if it can't be read in time."""
    query = request.url.query
    if len(query) > LONGEST:
        return None
    try:
        params = parse_qs(query, keep_blank_values=True, max_num_fields=200)
        return await asyncio.wait_for(asyncio.to_thread(find, params), PATIENCE)
    except (TimeoutError, *PROBLEMS) as error:  # the page says what is wrong
        log.info("no preview of a page: %s", error)
        return None


def _address(request: Request) -> str:
    """The absolute address of a page without its query, as its visitors write it."""
    headers = request.headers
    forwarded = network_address.forwarded_scheme(headers)
    scheme = forwarded if forwarded in ("http", "https") else request.url.scheme
    host = quote(headers.get("host", ""), safe=":[].-_")
    return f"{scheme}://{host}{quote(request.url.path)}"


async def picture(request: Request) -> Response:
    """Answer with the picture of a stored duel."""
    duel = await _linked(request)
    if duel is None or duel.picture is None:
        return PlainTextResponse("No picture of this link is stored here.", 404)
    headers = {"Cache-Control": "max-age=86400"}
    return Response(duel.picture.card, media_type="image/png", headers=headers)
