"""One run of a page for a visitor: how they arrived, when the page may render, the address, errors."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from normviz.home import FolderError
from normviz.runs.store import StoreError

from .session import address, network_address, presence, render_lock, visitor
from .session.pages import tab_title
from .widgets import page_foot, store_errors


def run(page: StreamlitPage) -> None:
    """Render the page. A store or folder that can't be used is a sentence on the page."""
    try:
        is_new = "page" not in st.session_state
        store_errors.begin()
        address.arrive(page.url_path)
        st.set_page_config(tab_title(page.title))  # a duel names itself
        with st.container(key="page_start"):
            st.html('<div id="content" tabindex="-1"></div>')
        place = st.container(key="trouble")
        with render_lock.held(is_new, visitor.me(), network_address.of_page()):
            presence.begin()
            page.run()
            page_foot.show()
        store_errors.show(place)
    except (StoreError, FolderError) as error:
        store_errors.say(error)
