"""The pages that links and buttons of others lead to, where each knows of the other."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage


def duel() -> StreamlitPage:
    """The Duel page as the navigation knows it."""
    from ..views.duel import page as duel  # whose "Why" leads to the Anatomy page, which leads here

    return st.Page(duel.page, title="Duel", url_path="duel", default=True)


def maps() -> StreamlitPage:
    """The Maps page, whose cells open in the duel, from where a button leads to maps."""
    from ..views.maps import page as maps

    return maps.entry()


def runs() -> StreamlitPage:
    """The Runs page, which opens its runs in the duel, where a link leads back."""
    from ..views.runs import page as runs

    return runs.entry()
