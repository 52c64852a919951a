"""The Claims page: what the field says about norm placement, tested here."""

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
    "Each claim is tested by an experiment on small models with several seeds. The rule for its verdict "
    "was fixed before the experiment ran. Negative and surprising results come first. Results hold for "
    "these models and tasks; whether they hold for large ones is not measured."
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
    if first is not None:  # a linked claim comes first, and ignores the filters
        found = [CLAIMS[first], *(claim for claim in found if claim.key != first)]
    with st.container(key="claims", gap=None):
        for claim in found:
            claim_list.row(claim, claim.key == opened)
            if claim.key == opened:
                claim_card.show(claim, back)


def _opened() -> str | None:
    """The key of the open claim: the link's on arrival, else the one that was clicked last."""
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
