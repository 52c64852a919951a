"""The Claims page: filters, and the list of claims with a verdict for each."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from normviz.claims import CLAIMS, Claim
from normviz.claims.sentences import ORDER, chip
from normviz.claims.stored import shipped_result
from normviz.links import cut

from ...session import address
from ...session.backend import shared
from ...session.markdown import literal
from ...widgets import glossary, link_notices
from ...widgets.buttons import button
from . import card

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
    glossary.line(
        "placement", "loss", "nat", "gradient", "rate", "warmup", "seed", "median", "interval"
    )
    link_notices.strange("claim")
    first = st.session_state.get("claim_linked")
    found = filtered()
    if first is not None:  # a linked claim comes first, and ignores the filters
        found = [CLAIMS[first], *(claim for claim in found if claim.key != first)]
    with st.container(key="claims", gap=None):
        for claim in found:
            row(claim, claim.key == opened)
            if claim.key == opened:
                card.show(claim, back)


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


# Filters and rows.

COLORS = {
    "contradicted": "orange", "holds only where": "violet", "not distinguishable": "gray",
    "holds": "green", "not run": "blue",
}  # fmt: skip
WHOSE = ("Papers", "Teaching material")


def filtered() -> list[Claim]:
    """Show the filters. Returns the claims that pass, negative and surprising results first."""
    kinds = {claim.key: chip(claim, shipped_result(claim)) for claim in CLAIMS}
    counts = Counter(kinds.values())
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="claim_filters"
    ):
        verdicts = st.segmented_control(
            "Verdicts", [kind for kind in ORDER if counts[kind]], selection_mode="multi",
            key="claim_verdicts", format_func=lambda kind: f"{kind} {counts[kind]}",
            label_visibility="collapsed",
        )  # fmt: skip
        whose = st.segmented_control(
            "Source", WHOSE, key="claim_whose", label_visibility="collapsed"
        )
        words = st.text_input(
            "Search", key="claim_search", label_visibility="collapsed", width=260,
            placeholder="warm-up, DeepNorm, arXiv:2002.04745 ...",
        )  # fmt: skip
    found = [
        claim
        for claim in CLAIMS
        if (not verdicts or kinds[claim.key] in verdicts)
        and (not whose or claim.everyday == (whose == WHOSE[1]))
        and _holds(claim, words)
    ]
    if not found:
        st.info("No claim passes these filters.")
    return sorted(found, key=lambda claim: ORDER.index(kinds[claim.key]))


def _holds(claim: Claim, words: str) -> bool:
    text = " ".join((claim.key, claim.label, claim.sentence, claim.source)).casefold()
    return all(word in text for word in words.casefold().split())


def row(claim: Claim, is_open: bool) -> None:
    """A claim's verdict, its name as the button that opens it, and its sentence."""
    kind = chip(claim, shipped_result(claim))
    with st.container(key=f"claim_row_{claim.key}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(kind, color=COLORS[kind], width=160)  # pyright: ignore
            icon = ":material/expand_less:" if is_open else ":material/expand_more:"
            button(f"{claim.key} · {literal(claim.label)}", _toggle, claim.key, type="tertiary",
                   key=f"open_{claim.key}", icon=icon)  # fmt: skip
        st.caption(literal(claim.sentence))


def _toggle(key: str) -> None:
    st.session_state["claim"] = None if st.session_state.get("claim") == key else key
