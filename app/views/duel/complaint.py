"""Why a value was refused, under its widget."""

from __future__ import annotations

import streamlit as st

from ...session import duel
from ...session.markdown import capital, literal, titled


def under(*widgets: str) -> None:
    """The sentence, if one of the widgets with these keys holds the refused value."""
    page_duel = duel.duel()
    if page_duel.complaint and page_duel.refused_in in widgets:
        say(page_duel.complaint)


def say(sentence: str) -> None:
    """A sentence of an error, with the settings by the names that their widgets have."""
    st.error(literal(capital(titled(sentence))))
