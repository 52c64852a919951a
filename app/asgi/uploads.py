"""The bound on uploaded files: a shared server takes none, any other few that are not used yet.

Streamlit keeps every uploaded file in memory until its page is closed, under any name it is sent.
"""

from __future__ import annotations

import re

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ..session import visitor

MOST = 40
"""Files of all pages together, of up to a megabyte each."""
ADDRESS = re.compile(r"/_stcore/upload_file/[^/]+/[^/]+/?$")
NONE = "This server is shared and takes no files."
FULL = f"{MOST} uploaded files are not used yet, as many as this server keeps: remove one, or try later."


class Uploads:
    """Middleware that refuses uploads unread: all where it `takes` none, else those that are too many."""

    def __init__(self, app: ASGIApp, takes: bool = True) -> None:
        self.app, self.takes = app, takes
        self._coming = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        is_put = scope["type"] == "http" and scope["method"] == "PUT"
        if not is_put or ADDRESS.search(scope["path"]) is None:
            await self.app(scope, receive, send)
        elif not self.takes:
            await PlainTextResponse(NONE, 403)(scope, receive, send)
        elif _stored() + self._coming >= MOST:
            await PlainTextResponse(FULL, 429)(scope, receive, send)
        else:
            self._coming += 1
            try:
                await self.app(scope, receive, send)
            finally:
                self._coming -= 1


def used(file: UploadedFile) -> None:
    """Free an uploaded file whose content is stored elsewhere now."""
    if (manager := _manager()) is not None:
        manager.remove_file(visitor.session(), file.file_id)


def _stored() -> int:
    """How many uploaded files Streamlit keeps."""
    manager = _manager()
    return 0 if manager is None else sum(map(len, [*manager.file_storage.values()]))


def _manager() -> MemoryUploadedFileManager | None:
    """Streamlit's store of uploads; None in a page test, which has no server."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager if isinstance(manager, MemoryUploadedFileManager) else None
