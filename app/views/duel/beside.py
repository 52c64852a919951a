"""The observed run beside the lanes: somebody's own model, which was watched while it trained elsewhere.

It has no settings to change here. Its charts stand beside those of the lanes, and a line says what it is.
"""

from __future__ import annotations

import streamlit as st

from normviz.catalog import SCHEMES
from normviz.limits import MAX_LANES
from normviz.links import cut
from normviz.observed import KEY, PREFIX
from normviz.runs import Run
from normviz.runs.lane import LETTERS
from normviz.runs.listing import described
from normviz.runs.names import lane_name

from ...session import duel
from ...session.backend import SharedBackend
from ...session.markdown import literal
from ...session.policy import policy
from ...widgets import badge
from ...widgets.buttons import button
from .lanes import Lane, mark, styles

WHAT = (
    "observed by normviz.watch: its own data, its own loop and its own loss. Compare how its layers behave, "
    "not its loss"
)


def current(page_duel: duel.Duel, backend: SharedBackend) -> Run | None:
    """The observed run of this duel. Where it can't be shown, a notice says why."""
    if not page_duel.beside:
        return None
    named = page_duel.beside.startswith(PREFIX) and KEY.fullmatch(page_duel.beside)
    run = backend.store.latest(page_duel.beside) if named else None
    why = _why_not(page_duel, run)
    if why:
        page_duel.notices += (f"The observed run {cut(page_duel.beside)} is not shown: {why}.",)
        page_duel.beside = ""
        return None
    return run


def _why_not(page_duel: duel.Duel, run: Run | None) -> str | None:
    if not policy().own_models:
        return "this is a shared server, which takes no runs of own models"
    if run is None or not run.is_observed:
        return "it is not stored on this machine"
    if page_duel.story:
        return "a step of the tour has its own lanes"
    if len(page_duel.lanes) >= MAX_LANES:
        return f"it needs a lane, and the link has {MAX_LANES}"
    return None


def name(run: Run, lanes: list[Lane]) -> str:
    """ "B Tiny, Pre-LN, observed": what the charts call it."""
    configs = [*(lane.config for lane in lanes), run.config]
    return " ".join(lane_name(LETTERS[len(lanes)], run.config, configs).split())


def show(run: Run | None, lanes: list[Lane], backend: SharedBackend) -> None:
    """A line with the run's name, what came of it and what it is; nothing without one."""
    if run is None:
        return
    color = styles([lane for lane in lanes if lane.run], run)[-1].color  # as in the charts
    scheme = run.config.scheme if run.config.scheme in SCHEMES else None
    with st.container(key="beside", gap="xxsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            mark(name(run, lanes), scheme, run.config.depth, color)
            verdict = backend.frames.verdict(run)
            badge.verdict(verdict.kind, verdict.sentence)
            button("Remove", duel.show_beside, duel.duel(), "", key="take_beside", type="tertiary")
        st.caption(f"{literal(described(run.config))}; {WHAT}.")
