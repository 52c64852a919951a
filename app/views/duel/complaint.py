"""Why a value was refused, under its widget."""

from __future__ import annotations

import streamlit as st

from ...session import duel
from ...session.markdown import capital, literal, titled


def under(*widgets: str) -> None:
    """The sentence, if one of the widgets with these keys holds the refused value."""
    it = duel.duel()
    if it.complaint and it.refused_in in widgets:
        say(it.complaint)


def say(sentence: str) -> None:
    """A sentence of an error, with the settings by the names that their widgets have."""
    st.error(literal(capital(titled(sentence))))
