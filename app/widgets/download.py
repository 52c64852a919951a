"""A button that makes a file at the click, and keeps the file until the browser has fetched it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import streamlit as st
from streamlit import runtime

KEPT = 16
"""Files that the server keeps at the same time. The replay of the opening duel has 1.8 MB."""

_NEXT = count()


def download(
    label: str, make: Callable[[], str | bytes], name: str, kind: str, *, ready: bool = True, **more
) -> None:
    """The button `label` for the file that `make` returns, disabled unless `ready`. It runs no page again.

    Streamlit gives a file that is made at the click to no page, and deletes it after the next two runs
    of any page or fragment, which is at once where some visitors watch charts. The last `KEPT` stay here.
    """

    def kept() -> str | bytes:
        made = make()
        data = made.encode() if isinstance(made, str) else made
        if runtime.exists():
            runtime.get_instance().media_file_mgr.add(
                data, kind, f"download {next(_NEXT) % KEPT}", name, is_for_static_download=True
            )
        return data

    st.download_button(
        label, kept, name, kind, on_click="ignore", disabled=not ready, width="stretch", **more
    )
