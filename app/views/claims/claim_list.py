"""The list of claims: filters, and a row for each claim with its verdict."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from normviz.claims import CLAIMS, Claim
from normviz.claims.stored import shipped_result
from normviz.claims.words import ORDER, chip

from ...widgets.buttons import button
from ...widgets.markdown import literal

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
