"""Which names a server on one's own machine answers for: its own ones alone.

Else a page of another site could point its own name at this machine (DNS rebinding), and would then
count as a page of this server. A request by a number as an address can't come from such a page. A shared
server has a public name that it does not know, so it answers for every name.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

REFUSED = (
    "This server answers at localhost, at its machine's name, and at addresses in numbers, and this "
    "request was for {!r}. If that is a name of this server, start it with "
    "STREAMLIT_SERVER_ALLOWED_HOSTS set to that name, or with NORMVIZ_HOSTED=1 if strangers may use it."
)


class OwnHosts:
    """Middleware that refuses pages, files and sockets under a name that is not this server's."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] in ("http", "websocket"):
            host = Headers(scope=scope).get("host", "")
            if host and not is_own(host):
                answer = PlainTextResponse(REFUSED.format(host[:80]), 421)
                refuse = answer if scope["type"] == "http" else WebSocketClose(1008)
                await refuse(scope, receive, send)
                return
        await self.app(scope, receive, send)


def is_own(host: str) -> bool:
    """Whether a request's `Host` names this machine, or what Streamlit's `server.allowedHosts` lists."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    machine = socket.gethostname().lower()
    own = {"localhost", machine, f"{machine}.local", st.get_option("server.address")}
    listed = [host.strip().lower().rstrip(".") for host in st.get_option("server.allowedHosts")]
    parents = tuple(host[1:] for host in listed if host.startswith("*."))
    return (
        name in own | {*listed}
        or "*" in listed
        or name.endswith((".localhost", *parents))
        or _is_number(name)
    )


def _is_number(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
