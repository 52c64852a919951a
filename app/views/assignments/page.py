"""The Assignments page: the list of them, or the one that the address names."""

from __future__ import annotations

import streamlit as st

from normviz.lessons.assignments import ASSIGNMENTS, BugHunt
from normviz.links import Codec

from ...session import address
from ...session.markdown import literal, sentence
from ...session.pages import PAGES
from ...widgets import link_notices
from ...widgets.buttons import button
from . import experiment, hunt

KEY = "assignment"
CODEC = Codec((KEY,), version="")


def page() -> None:
    """The page, from top to bottom."""
    key = _key()
    opened = next((each for each in ASSIGNMENTS if each.key == key), None)
    with st.container(key="head"):
        st.markdown(f"# {literal(opened.label) if opened else 'Assignments'}")
    link_notices.unknown_parameters(CODEC)
    if key and opened is None:
        st.error(literal(sentence(f"the link names an {ASSIGNMENTS.unknown(key)}")))
    if opened is None:
        st.markdown(PAGES["assignments"].words)
        with st.container(gap="xsmall", key="assignments_contents"):
            for each in ASSIGNMENTS:
                button(literal(each.label), _open, each.key, key=f"open_{each.key}",
                       icon=":material/assignment:")  # fmt: skip
                st.caption(literal(each.sentence))
        return
    if isinstance(opened, BugHunt):
        hunt.show(opened)
    else:
        experiment.show(opened)
    button("All assignments", _open, "", key="open_all", icon=":material/list:")


def _key() -> str:
    """The key of the open assignment, or what a link names instead; the address names it too."""
    linked = st.query_params.get(KEY, "")
    if st.session_state["arrived"]:
        _open(linked)
    key = st.session_state.setdefault(KEY, "")
    if key != linked:
        address.add(CODEC.params({KEY: key} if key else {}))
    return key


def _open(key: str) -> None:
    st.session_state[KEY] = key
