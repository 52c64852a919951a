"""Takes values of the duel's widgets, only of the duel that the browser shows.

With each message a browser sends the values of all widgets. One that it sends before it has those of a duel
just opened (a timer, the end of a run) brings values of the duel before, which nobody chose for this one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st

from ...session import duel
from ...session.duel import Duel
from ...session.page_state import chosen
from ...widgets.store_errors import reported

SHOWN = "duel_number"


def mark() -> None:
    """A hidden field with the duel's number, which comes back with each message. Call after all widgets: a
    browser that has it has their values."""
    page_duel = duel.duel()
    duel.show(page_duel, SHOWN, str(page_duel.number))
    st.text_input("Duel", key=SHOWN, label_visibility="collapsed")


def taken(act: Callable[..., None]) -> Callable[..., None]:
    """Decorate the callback of a widget's change: a value of a duel shown before changes nothing."""

    @wraps(act)
    def call(page_duel: Duel, *args: Any) -> None:
        if chosen(SHOWN) in (None, str(page_duel.number)):
            act(page_duel, *args)

    return reported(call)
