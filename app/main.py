"""The page's script: `server` runs it for every visitor. It makes the navigation."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from normviz.app import visit
from normviz.app.views.anatomy import page as anatomy
from normviz.app.views.by_hand import page as by_hand
from normviz.app.views.catalog import page as catalogue
from normviz.app.views.claims import page as claims
from normviz.app.views.duel import page as duel
from normviz.app.views.maps import page as maps
from normviz.app.views.norm_cost import page as norm_cost
from normviz.app.views.runs import page as runs
from normviz.app.widgets import page_links

HERE = Path(__file__).parent
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="104" height="28" viewBox="0 0 104 28">'
    '<text x="0" y="21" font-family="system-ui, sans-serif" font-size="22" font-weight="700" '
    'fill="#3b7dd8">NormViz</text></svg>'
)
st.set_page_config("NormViz", str(HERE / "icon.png"), layout="wide")
st.html(HERE / "style.css")
st.logo(LOGO, size="large")
pages = [
    st.Page(duel.page, title="Duel", url_path="duel", default=True),
    st.Page(maps.page, title="Maps", url_path="maps"),
    st.Page(claims.page, title="Claims", url_path="claims"),
    st.Page(anatomy.page, title="Anatomy", url_path="anatomy"),
    st.Page(catalogue.page, title="Catalogue", url_path="catalogue"),
    st.Page(by_hand.page, title="By hand", url_path="by-hand"),
    st.Page(norm_cost.page, title="Norm cost", url_path="cost"),
    st.Page(runs.page, title="Runs", url_path="runs"),
]
page_links.register(pages)
visit.run(st.navigation(pages, position="hidden" if st.context.is_embedded else "top"))
