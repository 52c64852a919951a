"""The page's script: `server` runs it for every visitor. It makes the navigation."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from normviz.app import visit
from normviz.app.views.anatomy import page as anatomy
from normviz.app.views.by_hand import page as by_hand
from normviz.app.views.catalog import page as catalogue
from normviz.app.views.choose import page as choose
from normviz.app.views.claims import page as claims
from normviz.app.views.duel import page as duel
from normviz.app.views.maps import page as maps
from normviz.app.views.norm_cost import page as norm_cost
from normviz.app.views.runs import page as runs
from normviz.app.widgets import page_links

HERE = Path(__file__).parent
st.set_page_config("NormViz", str(HERE / "icon.png"), layout="wide")
st.html(HERE / "style.css")
pages = [
    st.Page(duel.page, title="Duel", url_path="duel", default=True),
    st.Page(maps.page, title="Maps", url_path="maps"),
    st.Page(claims.page, title="Claims", url_path="claims"),
    st.Page(choose.page, title="Choose", url_path="choose"),
    st.Page(anatomy.page, title="Anatomy", url_path="anatomy"),
    st.Page(catalogue.page, title="Catalogue", url_path="catalogue"),
    st.Page(by_hand.page, title="By hand", url_path="by-hand"),
    st.Page(norm_cost.page, title="Norm cost", url_path="cost"),
    st.Page(runs.page, title="Runs", url_path="runs"),
]
page_links.register(pages)
visit.run(st.navigation(pages, position="hidden" if st.context.is_embedded else "top"))
