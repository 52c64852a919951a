"""The page's script: `main` runs it for every visitor. It makes the navigation."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from normviz.app import visit
from normviz.app.session.pages import PAGES
from normviz.app.views.assignments import page as assignments
from normviz.app.views.by_hand import page as by_hand
from normviz.app.views.catalog import page as catalogue
from normviz.app.views.choose import page as choose
from normviz.app.views.claims import page as claims
from normviz.app.views.duel import page as duel
from normviz.app.views.maps import page as maps
from normviz.app.views.own_model import page as own_model
from normviz.app.views.runs import page as runs
from normviz.app.views.tour import page as tour
from normviz.app.widgets import page_links
from streamlit.navigation.page import StreamlitPage

HERE = Path(__file__).parent
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="104" height="28" viewBox="0 0 104 28">'
    '<text x="0" y="21" font-family="system-ui, sans-serif" font-size="22" font-weight="700" '
    'fill="#3b7dd8">NormViz</text></svg>'
)
st.set_page_config("NormViz", str(HERE / "icon.png"), layout="wide")
st.html(HERE / "style.css")
st.logo(LOGO, size="large")
views = {
    "duel": duel.page,
    "maps": maps.page,
    "claims": claims.page,
    "choose": choose.page,
    "tour": tour.page,
    "assignments": assignments.page,
    "catalogue": catalogue.page,
    "by-hand": by_hand.page,
    "own-model": own_model.page,
    "runs": runs.page,
}
pages = {
    path: st.Page(
        view, title=PAGES[path].name, url_path=path, default=path == "duel",
        visibility="hidden" if PAGES[path].within else "visible",
    )
    for path, view in views.items()
}  # fmt: skip
page_links.register(pages)
menus: dict[str, list[StreamlitPage]] = {}
for path, about in PAGES.items():
    menus.setdefault(about.menu, []).append(pages[path])
visit.run(st.navigation(menus, position="hidden" if st.context.is_embedded else "top"))
