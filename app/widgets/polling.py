"""A part of a page that a timer draws again while work goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st

from .store_errors import guarded


def poll(part: Callable[..., bool], seconds: float, busy: bool, *args: Any) -> None:
    """Draw a part that says whether work goes on: as a fragment, every `seconds` while the page is `busy`.

    Once there is no work left the whole page runs again, without a timer; also where the work ended
    between the page's look, which said `busy`, and the part's own.
    """

    @wraps(part)
    def draw() -> None:
        if not part(*args) and busy:
            st.rerun()

    st.fragment(guarded(draw), run_every=seconds if busy else None)()
