"""Whether single letters press buttons. A visitor can turn it off; a cookie keeps that."""

from __future__ import annotations

import streamlit as st

COOKIE = "normviz_shortcuts"
KEY = "shortcuts"


def are_on() -> bool:
    """Whether this visitor has them on, as they are at first."""
    return st.session_state.get(KEY, st.context.cookies.get(COOKIE) != "off")


def of(letter: str | None) -> str | None:
    """What `shortcut=` of a button takes."""
    return letter if are_on() else None


def setting() -> None:
    """The switch. `page_foot` writes the cookie."""
    st.toggle(
        "Keyboard shortcuts", are_on(), key=KEY, persist_state="session",
        help="On: a letter that a button shows presses it, Space plays the charts, and the arrow keys "
        "move their step. Off: Space and arrow keys act only inside the charts.",
    )  # fmt: skip
