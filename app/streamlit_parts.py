"""Private parts of Streamlit and uvicorn that NormViz relies on, and a check of those that fail silently.

pyproject.toml allows the minor release that was tested. For the next one: install it, run
`tests/app/test_streamlit_parts.py` and the browser tests, mend what fails, and raise the limit.
Style sheets name classes and `data-testid`s of Streamlit's page too; the browser tests see those.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit
from streamlit import config, net_util
from streamlit.runtime import Runtime
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_routes
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.server import ServerProtocol

IMPORTS = {
    "streamlit.proto.BackMsg_pb2": "asgi/connection_limit.py counts values; a simulated visitor speaks it",
    "streamlit.proto.ForwardMsg_pb2": "likewise",
    "streamlit.runtime.scriptrunner": "a page's session, its fragments, and Back in the browser",
    "streamlit.runtime.scriptrunner_utils": "asgi/log_limit.py silences one of its warnings",
    "streamlit.web": "start.py runs Streamlit's command",
}
"""Private modules that the pages import, and what for. Tests and this file are left out."""

TITLE, ROOT = "<title>Streamlit</title>", '<div id="root"></div>'
"""What Streamlit's HTML has once each."""
SOCKETS = "what is known of open WebSockets"
CHANGED = (
    "the installed Streamlit or uvicorn has changed {}: limits of a shared server, or pages, may fail. "
    "Install the one that requirements.txt names"
)


def ask_no_other_host() -> None:
    """For a page of a foreign origin Streamlit asks another host for this machine's public address, and
    would let in pages of that address. They have this server's `Host`, if they are its pages."""
    net_util.get_external_ip = lambda: None


def _downloads() -> bool:
    """What `widgets/download.py` does with a file."""
    manager = MediaFileManager(MemoryMediaFileStorage("/here"))
    manager.add(b"x", "text/plain", "a", "a.txt", is_for_static_download=True)
    return hasattr(Runtime, "media_file_mgr")


def _html() -> bool:
    """What `asgi/first_paint.py` replaces."""
    html = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    return html.count(TITLE) == html.count(ROOT) == 1


def _addresses() -> bool:
    """What `asgi/visitor_cookie.py` and the proxy's configuration (assets/deploy/nginx.conf) look for."""
    paths = starlette_routes.ROUTE_HEALTH, starlette_routes.BASE_ROUTE_UPLOAD_FILE
    return (*paths, starlette_routes.ROUTE_METRICS) == (
        "_stcore/health", "_stcore/upload_file", "_stcore/metrics",
    )  # fmt: skip


def _context() -> bool:
    fields = ScriptRunContext.__dataclass_fields__
    return {"session_id", "fragment_ids_this_run", "is_history_navigation"} <= set(fields)


def _settings() -> bool:
    """An unknown setting in config.toml is ignored."""
    return set(SETTINGS) <= set(config.get_config_options())


def _origins() -> bool:
    """The module in which `ask_no_other_host` replaces a function is the one that is used."""
    return getattr(server_util, "net_util", None) is net_util


def _sockets() -> bool:
    """What `asgi/websocket_limits.py` follows and reads of uvicorn's WebSockets."""
    socket = WebSocketsSansIOProtocol
    return (
        {"connection_made", "data_received", "connection_lost"} <= vars(socket).keys()
        and _sets(socket, "conn", "frames", "transport", "client")
        and isinstance(ServerProtocol().reader.buffer, bytearray)
    )


def _sets(kind: type, *names: str) -> bool:
    """Whether the objects of a class get these attributes when they are made."""
    return set(names) <= set(kind.__init__.__code__.co_names)


SETTINGS = (
    "browser.gatherUsageStats",
    "client.showErrorDetails",
    "client.toolbarMode",
    "global.minCachedMessageSize",
    "runner.fastReruns",
    "runner.postScriptGC",
    "server.address",
    "server.allowedHosts",
    "server.corsAllowedOrigins",
    "server.disconnectedSessionTTL",
    "server.enableCORS",
    "server.fileWatcherType",
    "server.maxMessageSize",
    "server.maxUploadSize",
    "server.maxWidgetStateSize",
    "server.showEmailPrompt",
    "server.websocketPingInterval",
    "server.xsrfCookieSameSite",
)
PARTS: dict[str, Callable[[], bool]] = {
    "how it keeps files that are downloaded": _downloads,
    "the HTML of its page": _html,
    "the addresses of health, uploads and metrics": _addresses,
    "the context of a script run": _context,
    "the names of its settings": _settings,
    "where it asks for this machine's address": _origins,
    "whether a page is still connected": lambda: hasattr(Runtime, "is_active_session"),
    "where it keeps its sessions": lambda: _sets(Runtime, "_session_mgr"),
    SOCKETS: _sockets,
}


def changed() -> list[str]:
    """The parts that are not as they were tested."""
    return [name for name, is_same in PARTS.items() if not _holds(is_same)]


def _holds(is_same: Callable[[], bool]) -> bool:
    try:
        return is_same()
    except Exception:  # whatever a changed part raises
        return False
