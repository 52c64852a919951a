"""Gives each browser the signed cookie that says which visitor it is."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from normviz.home import FolderError

from ..session import network_address, visitor

ADDRESS = "/_stcore/health"
"""Streamlit's page asks here before each connection of its socket. No cache keeps the answer, so
nobody gets another visitor's cookie from one."""


class VisitorCookie:
    """Middleware that sets the cookie where a browser has none that this server signed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        header = _header(scope) if scope["type"] == "http" and scope["method"] == "GET" else None

        async def with_cookie(message: Message) -> None:
            if header and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), (b"set-cookie", header)]
            await send(message)

        await self.app(scope, receive, with_cookie if header else send)


def _header(scope: Scope) -> bytes | None:
    """What sets a browser's cookie, where this answer is to do so."""
    asked = HTTPConnection(scope)
    if not scope["path"].endswith(ADDRESS) or visitor.named(asked.cookies):
        return None
    same_site = str(st.get_option("server.xsrfCookieSameSite") or "lax").lower()
    schemes = scope.get("scheme"), network_address.forwarded_scheme(asked.headers)
    is_secure = "https" in schemes or same_site == "none"
    with suppress(FolderError):  # the page says why
        name, value = visitor.new_cookie()
        secure = "; Secure" if is_secure else ""
        return f"{name}={value}; Path=/; HttpOnly; SameSite={same_site.title()}{secure}".encode()
    return None
