"""The page's script: `server` runs it for every visitor."""

from __future__ import annotations

from pathlib import Path

import address
import entries
import herd
import streamlit as st
import trouble
import watched
from views import anatomy, catalogue, claims, cost, hand, maps, runs

from normviz.home import FolderError
from normviz.hosted import Misconfigured
from normviz.store import StoreError

HERE = Path(__file__).parent
st.set_page_config("NormViz", str(HERE / "icon.png"), layout="wide")
st.html(HERE / "style.css")
try:
    page = st.navigation(
        [
            entries.duel(),
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
    with herd.turn(is_new):
        watched.begin()
        page.run()
        address.tell()
    trouble.show(place)
except Misconfigured as error:
    st.error(str(error))
except (StoreError, FolderError) as error:
    trouble.say(error)
