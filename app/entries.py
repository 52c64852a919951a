"""The page that a link or button of another page leads to, where each knows of the other."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage


def duel() -> StreamlitPage:
    """The Duel page as the navigation knows it."""
    from views import duel  # whose "Why" leads to the Anatomy page, which leads here

    return st.Page(duel.page, title="Duel", url_path="duel", default=True)
