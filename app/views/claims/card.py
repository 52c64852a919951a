"""An open claim: verdict, figure, numbers, explanation, rule, and buttons to run it and to see its runs."""

from __future__ import annotations

import streamlit as st

from normviz.runs.engines import computed_by
from normviz.studies.claims import Claim
from normviz.studies.claims.sentences import basis, by_set, late, opens
from normviz.studies.claims.stored import (
    ClaimResult,
    explained,
    shipped_lanes,
    shipped_result,
    shipped_sets,
)

from ...session.backend import SharedBackend
from ...session.markdown import literal, sentence, source
from ...session.page_state import PageState
from ...widgets import page_links
from ...widgets.copy_button import copy_link
from . import run_panel
from .result import figure, numbers

GENERAL = "Its parts are one statement, so that one false part contradicts it."


def show(claim: Claim, page_state: PageState, backend: SharedBackend) -> None:
    """The card of a claim, with its shipped result."""
    result = shipped_result(claim)
    with st.container(border=True, key=f"claim_{claim.key}"):
        st.caption(source(claim.source))
        if result is None:
            st.info("No result ships with NormViz yet: run the claim here.")
        else:
            _verdict(claim, result)
            left, right = st.columns([3, 2], gap="medium")
            with left:
                figure(claim, result)
            with right:
                st.markdown(literal(explained(claim, result)))
                numbers(claim, result)
        _rule(claim)
        _ways(claim, result, backend)
        if claim.arms:
            run_panel.show(claim, page_state, backend)


def _verdict(claim: Claim, result: ClaimResult) -> None:
    verdict = result.verdict(claim)
    st.markdown(f"**{literal(sentence(verdict.sentence))}**")
    st.markdown("\n".join(f"* {literal(line)}" for line in verdict.lines()))
    if claim.general:
        st.caption(GENERAL)
    if said := late(claim, result):
        st.caption(f"{said}.")
    if claim.arms:
        st.caption(sentence(literal(by_set(claim, shipped_sets(claim)))))
    if claim.changed:
        st.caption(f"Among what changed after an earlier result: {literal(claim.changed)}")
    by = f" {computed_by(result.engines)}" if claim.arms else ""
    st.caption(f"{sentence(basis(claim, result))}{by}")


def _rule(claim: Claim) -> None:
    st.markdown("**The rule**")
    st.markdown("\n".join(f"* {literal(sentence)}" for sentence in claim.rule_words()))
    if not claim.arms:
        st.caption(
            "Nothing was trained for this claim: its numbers are counts in the census of models. Rows are "
            "code paths of a library, not models in use."
        )
        return
    st.caption(
        "The verdict is about the parts that are no controls. A part is true if an interval over the "
        "seeds, or over placements where the rule says so, lies inside of what is claimed, false if it lies "
        "outside, else undecided; by a sign test if most seeds, or pairs, do. Intervals are of 95 % where no "
        "other share is named. Where a run still fell, a part is decided only if it comes out the same with "
        "that run's loss at the floor."
    )
    with st.expander("The experiment"):
        for arm, words in claim.settings().items():
            settings = " ".join(f"{name}={word}" for name, word in words.items())
            st.markdown(f"**{literal(claim.arm_label(arm))}**: `{settings}`")
        chosen = (
            " A seed's rate is the one with the lowest mean over all other seeds, and the intervals include "
            "that choice."
            if claim.tuned
            else ""
        )
        st.caption(
            f"{len(claim.cells())} runs for each set of {claim.seeds} seeds.{chosen} Other settings are the "
            "defaults."
        )
        st.code(f"normviz claims run {claim.key}", language="bash")


def _ways(claim: Claim, result: ClaimResult | None, backend: SharedBackend) -> None:
    """Buttons to open the claim's runs in the duel (or its models in the catalogue), and to copy its
    link; and how many of its runs the duel shows."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words = "Train its models in the duel" if claim.lab else "See its runs in the duel"
        if not claim.arms:
            page_links.models()
        elif st.button(words, key=f"duel_{claim.key}",
                       icon=":material/stacked_line_chart:"):  # fmt: skip
            page_links.open_duel(shipped_lanes(claim), backend)
        copy_link(f"copy_{claim.key}", f"claim={claim.key}")
        if claim.arms and result is not None:
            st.caption(f"{opens(claim, result)}.")
