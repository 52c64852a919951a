"""The contents of the tour: a link to each step, which the Duel page shows."""

from __future__ import annotations

import streamlit as st

from normviz.lessons.tour import STEPS

from ...session.pages import PAGES
from ...widgets import link_notices, page_links


def page() -> None:
    """The page, from top to bottom."""
    with st.container(key="head"):
        st.markdown("# Tour")
    link_notices.unknown_parameters()
    st.markdown(f"{PAGES['tour'].words} Some ask for a guess before the charts play.")
    with st.container(gap="xsmall", key="tour_contents"):
        for number, step in enumerate(STEPS, start=1):
            icon = ":material/quiz:" if step.question else ":material/arrow_forward:"
            page_links.to("duel", f"{number}. {step.title}", {"story": str(number)}, icon)
