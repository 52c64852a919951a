"""A limit on uploaded files that are not used yet: for each page, each network address, and in all.

Streamlit keeps every uploaded file in memory until its page is closed, under any name it is sent.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ..session import network_address, visitor

EACH, ADDRESS_EACH, IN_ALL = 4, 10, 40
"""Files, of up to a megabyte each: of a page, of a network address, in all."""
SECONDS = 60.0
"""An upload that takes longer is refused."""
ADDRESS = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+/?$")
UPLOADS_FULL = (
    "{} uploaded files are not used yet. This server keeps up to {} {}: remove one, or try later."
)
SLOW = f"The file did not arrive within {SECONDS:g} s: try again, or paste the text."


class Uploads:
    """Middleware that refuses uploads above the limit before it reads their content."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._coming: Counter[str] = Counter()
        self._addresses: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        is_put = scope["type"] == "http" and scope["method"] == "PUT"
        match = ADDRESS.search(scope["path"]) if is_put else None
        if match is None:
            await self.app(scope, receive, send)
            return
        if (
            sentence := self._full(page := match[1], network_address.of_request(scope))
        ) is not None:
            await PlainTextResponse(sentence, 429)(scope, receive, send)
            return
        self._coming[page] += 1
        self._addresses[page] = network_address.of_request(scope)
        try:
            await self._serve(scope, receive, send)
        finally:
            self._coming[page] -= 1
            if not self._coming[page]:
                del self._coming[page]

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = False

        async def noted(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            async with asyncio.timeout(SECONDS):
                await self.app(scope, receive, noted)
        except TimeoutError:
            if not began:
                headers = {"Connection": "close"}
                await PlainTextResponse(SLOW, 408, headers=headers)(scope, receive, send)

    def _full(self, page: str, address: str) -> str | None:
        there = _stored() + self._coming
        self._addresses = {
            session: at for session, at in self._addresses.items() if session in there
        }
        if there[page] >= EACH:
            return UPLOADS_FULL.format(there[page], EACH, "for each page")
        own = sum(n for session, n in there.items() if self._addresses.get(session) == address)
        if own >= ADDRESS_EACH:
            return UPLOADS_FULL.format(own, ADDRESS_EACH, "for each network address")
        if there.total() >= IN_ALL:
            return UPLOADS_FULL.format(there.total(), IN_ALL, "in all")
        return None


def used(file: UploadedFile) -> None:
    """Free an uploaded file whose content is stored elsewhere now."""
    if (manager := _manager()) is not None:
        manager.remove_file(visitor.session(), file.file_id)


def _stored() -> Counter[str]:
    """How many uploaded files each page has."""
    manager = _manager()
    pages = [] if manager is None else [*manager.file_storage.items()]
    return Counter({page: len(files) for page, files in pages})


def _manager() -> MemoryUploadedFileManager | None:
    """Streamlit's store of uploads; None in a page test, which has no server."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager if isinstance(manager, MemoryUploadedFileManager) else None
