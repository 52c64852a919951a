"""The page's entry script: `normviz app` runs it through Streamlit."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from views import duel

from normviz.store import StoreError

HERE = Path(__file__).parent
st.set_page_config("NormViz", str(HERE / "icon.png"), layout="wide")
st.html(HERE / "style.css")
try:
    st.navigation(
        [st.Page(duel.page, title="Duel", url_path="duel", default=True)], position="hidden"
    ).run()
except StoreError as error:
    st.error(str(error))
