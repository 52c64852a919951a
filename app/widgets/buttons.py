"""Buttons that act once a click.

A fragment's timer that fires between a press and its sending carries the press too, so one click
reaches the server twice, tens of milliseconds apart (Streamlit 1.67; about one in twelve with this
page's ticks). The copy comes with a run of the fragment alone; a button outside of it drops that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st

from ..session.fragments import runs_alone
from .store_errors import kept


def button(label: str, act: Callable[..., None], *args: object, **look: Any) -> None:
    """A button outside every fragment; `look` is what `st.button` takes."""
    st.button(label, on_click=_once(act), args=args, **look)


def submit(label: str, act: Callable[..., None], *args: object, **look: Any) -> None:
    """The button that sends a form; `look` is what `st.form_submit_button` takes."""
    st.form_submit_button(label, on_click=_once(act), args=args, **look)


def _once(act: Callable[..., None]) -> Callable[..., None]:
    @wraps(act)
    def call(*args: object) -> None:
        if not runs_alone():
            kept(act)(*args)

    return call
