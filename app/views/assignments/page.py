"""The Assignments page: the list of them, or the one that the address names."""

from __future__ import annotations

import streamlit as st

from normviz.lessons.assignments import ASSIGNMENTS, BugHunt
from normviz.links import Codec

from ...session import address
from ...session.markdown import literal, sentence
from ...session.pages import PAGES
from ...widgets import link_notices, page_links
from . import experiment, hunt

CODEC = Codec(("assignment",), version="")
KEY = "assignment"


def page() -> None:
    """The page, from top to bottom."""
    key = st.query_params.get(KEY, "")
    opened = next((each for each in ASSIGNMENTS if each.key == key), None)
    with st.container(key="head"):
        st.markdown(f"# {literal(opened.label) if opened else 'Assignments'}")
    link_notices.unknown_parameters(CODEC)
    for problem in CODEC.problems(address.params()):
        st.info(literal(sentence(problem)))
    if key and opened is None:
        st.error(literal(sentence(f"the link names an {ASSIGNMENTS.unknown(key)}")))
    if opened is None:
        st.markdown(PAGES["assignments"].words)
        with st.container(gap="xsmall", key="assignments_contents"):
            for each in ASSIGNMENTS:
                page_links.to("assignments", each.label, {KEY: each.key}, ":material/assignment:")
                st.caption(literal(each.sentence))
        return
    if isinstance(opened, BugHunt):
        hunt.show(opened)
    else:
        experiment.show(opened)
    page_links.to("assignments", "All assignments", {}, ":material/list:")
