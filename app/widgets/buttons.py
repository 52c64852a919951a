"""Buttons whose callback runs once for each click.

If a fragment's timer fires between a click and its message, both messages carry the click, and it
reaches the server twice (Streamlit 1.67; about one click in twelve with this page's timers). The copy
comes with a rerun of the fragment alone. A button outside of the fragment ignores it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from . import shortcuts
from .store_errors import reported


def button(label: str, act: Callable[..., None], *args: object, **options: Any) -> None:
    """A button outside of all fragments; `options` is what `st.button` takes."""
    if "shortcut" in options:
        options["shortcut"] = shortcuts.of(options["shortcut"])
    st.button(label, on_click=_once(act), args=args, **options)


def submit(label: str, act: Callable[..., None], *args: object, **options: Any) -> None:
    """A form's submit button; `options` is what `st.form_submit_button` takes."""
    st.form_submit_button(label, on_click=_once(act), args=args, **options)


def runs_alone() -> bool:
    """Whether this run is one of fragments, Streamlit's parts of a page that run alone."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def _once(act: Callable[..., None]) -> Callable[..., None]:
    @wraps(act)
    def call(*args: object) -> None:
        if not runs_alone():
            reported(act)(*args)

    return call
