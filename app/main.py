"""The page's script: `server` runs it for every visitor."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from normviz.app.session import address, presence, render_lock
from normviz.app.views.anatomy import page as anatomy
from normviz.app.views.by_hand import page as hand
from normviz.app.views.catalogue import page as catalogue
from normviz.app.views.claims import page as claims
from normviz.app.views.maps import page as maps
from normviz.app.views.norm_cost import page as cost
from normviz.app.views.runs import page as runs
from normviz.app.widgets import page_links, store_errors

from normviz.home import FolderError
from normviz.hosted import Misconfigured
from normviz.store import StoreError

HERE = Path(__file__).parent
st.set_page_config("NormViz", str(HERE / "icon.png"), layout="wide")
st.html(HERE / "style.css")
try:
    page = st.navigation(
        [
            page_links.duel(),
            maps.entry(),
            claims.entry(),
            anatomy.entry(),
            catalogue.entry(),
            hand.entry(),
            cost.entry(),
            runs.entry(),
        ],
        position="hidden" if st.context.is_embedded else "top",
    )
    # A link is read by the page that a visitor arrives at, once: later the page writes the address.
    is_new = "page" not in st.session_state
    came_back = address.is_old_entry()
    st.session_state["arrived"] = came_back or st.session_state.get("page") != page.url_path
    st.session_state["page"] = page.url_path
    place = st.container(key="trouble")
    with render_lock.turn(is_new):
        presence.begin()
        page.run()
        address.tell()
    store_errors.show(place)
except Misconfigured as error:
    st.error(str(error))
except (StoreError, FolderError) as error:
    store_errors.say(error)
