"""A button that makes a file at the click, and keeps the file until the browser has fetched it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Any

import streamlit as st
from streamlit import runtime

KEPT = 16
KEPT_BYTES = 48_000_000
"""Files, and their bytes, that the server keeps at the same time; the newest is kept at any size. The
replay of the opening duel has 2.5 MB."""

_NEXT = count()
_SIZES: dict[str, int] = {}
"""The bytes of each kept file by its place, the oldest first."""
_LOCK = Lock()
_MAKING = Lock()
"""One file is made at a time: several would keep the pages from what the interpreter computes."""


def download(
    label: str,
    make: Callable[[], str | bytes],
    name: str,
    kind: str,
    *,
    ready: bool = True,
    **more: Any,
) -> None:
    """The button `label` for the file that `make` returns, disabled unless `ready`. It runs no page again.
    `kind` is the file's media type; `more` is what `st.download_button` takes.

    Streamlit gives a file that is made at the click to no page, and deletes it after the next two runs
    of any page or fragment, which is at once where some visitors watch charts. The last `KEPT` stay here,
    fewer where they have more than `KEPT_BYTES`.
    """

    def prepared() -> str | bytes:
        with _MAKING:
            made = make()
        data = made.encode() if isinstance(made, str) else made
        if runtime.exists():
            _keep(data, kind, name)
        return data

    st.download_button(
        label, prepared, name, kind, on_click="ignore", disabled=not ready, width="stretch", **more
    )


def _keep(data: bytes, kind: str, name: str) -> None:
    """Keep a file in the place of the oldest one; empty ones take the places of those that are too many."""
    files = runtime.get_instance().media_file_mgr
    with _LOCK:
        place = f"download {next(_NEXT) % KEPT}"
        _SIZES.pop(place, None)
        _SIZES[place] = len(data)
        files.add(data, kind, place, name, is_for_static_download=True)
        while sum(_SIZES.values()) > KEPT_BYTES and len(_SIZES) > 1:
            oldest = next(iter(_SIZES))
            del _SIZES[oldest]
            files.add(b"", kind, oldest, name, is_for_static_download=True)
