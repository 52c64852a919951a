"""Claims: what the field says of norm placement, and what came of it here."""

from __future__ import annotations

import streamlit as st

from normviz.claims import CLAIMS
from normviz.links import cut

from ...session import address
from ...session.backend import shared
from ...widgets import link_notices
from ...widgets.markdown import literal
from . import card as claim_card
from . import claim_list

INTRO = (
    "Each claim is an experiment with a rule that was fixed before it was run, on small models and "
    "several seeds. Negative and surprising results come first. What is found here holds for these "
    "models and tasks; whether it carries over to large ones is not measured."
)


def page() -> None:
    """The page, from top to bottom."""
    back = shared()
    opened = _opened()
    with st.container(key="head"):
        st.markdown(f"# {len(CLAIMS)} claims, measured")
    st.caption(INTRO)
    link_notices.strange("claim")
    first = st.session_state.get("claim_linked")
    found = claim_list.filtered()
    if first is not None:  # what a link opens comes first, whatever the filters say
        found = [CLAIMS[first], *(claim for claim in found if claim.key != first)]
    with st.container(key="claims", gap=None):
        for claim in found:
            claim_list.row(claim, claim.key == opened)
            if claim.key == opened:
                claim_card.show(claim, back)


def _opened() -> str | None:
    """The claim that is open: what a link says, else what was clicked last."""
    if st.session_state["arrived"] and "claim" in st.query_params:
        word, *more = st.query_params.get_all("claim")
        if word.upper() in CLAIMS:
            st.session_state["claim"] = st.session_state["claim_linked"] = word.upper()
        else:
            there = ", ".join(CLAIMS.keys())
            st.error(literal(f"The link names the claim {cut(word)}; there are {there}."))
        if more:
            st.info(
                f"The link gives claim {1 + len(more)} times, allowed is once: the first one is used."
            )
    opened = st.session_state.get("claim")
    if opened is not None:
        address.write({"claim": opened})
    elif not st.session_state["arrived"] and "claim" in st.query_params:
        del st.query_params["claim"]
    return opened
