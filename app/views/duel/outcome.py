"""What came out of the duel, in words: every lane over its seeds, and the lanes compared seed by seed."""

from __future__ import annotations

import streamlit as st

from normviz.limits import SEEDS
from normviz.runs.outcome import outcome

from ...session import duel
from ...session.backend import SharedBackend
from ...session.markdown import literal
from ...widgets.buttons import button
from . import transport
from .lanes import Lane, all_done, name

FEW = 2
"""Lanes up to which there is only one pair to compare."""
ABOUT = (
    "Training loss: mean over the last tenth of the steps. Held-out loss: after the last step, on examples "
    "that training never reads. Both in nats. Each seed draws other weights and other batches, the same for "
    "all lanes."
)


def show(lanes: list[Lane], backend: SharedBackend) -> None:
    """The sentences, once a lane has a finished run of its present settings."""
    names = [name(lane) for lane in lanes]
    current = [lane for lane in lanes if lane.is_current and lane.is_done]
    if not current:
        return
    with st.container(key="outcome", gap="xsmall"):
        st.markdown("## What came out")
        reference = _reference(names) if len(lanes) > FEW else names[0]
        recordings = [lane.recordings if lane.is_current else () for lane in lanes]
        runs = dict(zip(names, recordings, strict=True))
        duel_outcome = outcome(runs, duel.duel().seeds, reference)
        rows = [f"* **{literal(lane)}** {literal(words)}" for lane, words in duel_outcome.lanes]
        rows += [f"* {literal(sentence)}" for sentence in duel_outcome.comparisons]
        st.markdown("\n".join(rows))
        _repeat(lanes, backend)
        st.caption(literal(" ".join((*duel_outcome.notes, ABOUT))))


def _reference(names: list[str]) -> str:
    """The lane that the others are compared with, as a choice."""
    key = "outcome_reference"
    if st.session_state.get(key) not in names:
        st.session_state[key] = names[0]
    return st.segmented_control("Compare all lanes with", names, key=key, required=True) or names[0]


def _repeat(lanes: list[Lane], backend: SharedBackend) -> None:
    """A button to train more seeds, where one seed is shown and all lanes are finished."""
    if all_done(lanes) and not any(lane.repeats for lane in lanes):
        button(
            f"Repeat with {SEEDS} seeds", transport.repeat, duel.duel(), backend, key="outcome_repeat",
            icon=":material/repeat:", help="Shows whether the difference is more than chance",
        )  # fmt: skip
