"""Running a claim on this server: the button, the progress, and the verdict beside the shipped one."""

from __future__ import annotations

import streamlit as st

from normviz.formats import duration
from normviz.runs.engines import computed_by
from normviz.studies.claims import Claim
from normviz.studies.claims.drive import key, keys, missing_here, result_here
from normviz.studies.claims.sentences import expected
from normviz.studies.claims.stored import ClaimResult, shipped_result, shipped_sets
from normviz.studies.maps import Cell

from ...session.backend import SharedBackend, shared
from ...session.markdown import literal, sentence
from ...session.page_state import PageState
from ...session.policy import policy
from ...widgets import cells
from ...widgets.buttons import button
from ...widgets.polling import poll
from .result import figure, numbers


def show(claim: Claim, page_state: PageState, backend: SharedBackend) -> None:
    """The button to run or stop the claim, then its progress, in a fragment that polls while it runs."""
    if claim.is_timing:
        st.caption(
            "It measures times, which needs a machine that does nothing else: run the command below in a "
            "terminal."
        )
        return
    opened = cells.opened(keys(claim), backend)
    left = [
        cell
        for cell in missing_here(backend.store, claim)
        if opened is None or key(claim, cell) not in opened.runs
    ]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if left:
            _offer(claim, page_state, left)
        cells.stop_button(opened, keys(claim), backend, f"stop_{claim.key}", "Run it again")
    if page_state.refused:
        st.error(page_state.refused)
        page_state.refused = None
    poll(_tick, cells.TICK_SECONDS, opened is not None, claim, backend)


def _offer(claim: Claim, page_state: PageState, left: list[Cell]) -> None:
    """The button to run the claim, with an estimate of the time, or why it can't run here."""
    processes, seconds = policy().cells_at_once, _seconds(claim)
    why = policy().may_take("claim", seconds)
    too_long = f" Not here: {why}." if why else ""
    ships = shipped_result(claim)
    above = (
        f" (the verdict above is of {ships.seeds})" if ships and ships.seeds != claim.seeds else ""
    )
    button("Run it here", _run, claim, page_state, type="primary", key=f"run_{claim.key}",
           icon=":material/play_arrow:", disabled=bool(too_long))  # fmt: skip
    st.caption(
        f"{len(left)} runs with {claim.seeds} seeds{above}, at most about {duration(seconds)} in {processes} "
        f"process{'es' * (processes > 1)}. Uses runs that finished here before, not the shipped "
        f"ones.{too_long}"
    )


def _seconds(claim: Claim) -> float:
    return expected(claim, shipped_sets(claim), None, policy().cells_at_once)


def _run(claim: Claim, page_state: PageState) -> None:
    # A script can press a button that is off.
    if why := policy().may_take("claim", _seconds(claim)):
        page_state.refused = sentence(why)
        return
    backend = shared()
    configs = [cell.config for cell in missing_here(backend.store, claim)]
    cells.ask(page_state, configs, "claim", backend, claim.lab)


def _tick(claim: Claim, backend: SharedBackend) -> bool:
    """How the experiment goes or how it ended, and whether it goes on."""
    # Before the results, so that none that ends now is missed.
    opened = cells.opened(keys(claim), backend)
    result = result_here(backend.store, claim)
    if opened is not None:
        cells.progress(opened, len(missing_here(backend.store, claim)), len(claim.cells()))
    cells.failures(keys(claim), backend, "Run it again")
    if result is not None:
        _came_out(claim, result)
    return opened is not None


def _came_out(claim: Claim, result: ClaimResult) -> None:
    """The verdict of this server's run, and whether the shipped verdict is the same."""
    verdict_sentence, here = result.verdict(claim).sentence, result.verdict(claim).outcomes
    ships = shipped_result(claim)
    same = ""
    if ships is not None:
        there = ships.verdict(claim)
        same = (
            " Each part has the shipped outcome."
            if there.outcomes == here
            else f" Shipped: {there.sentence}."
        )
    by = computed_by(result.engines)
    st.success(
        f"On this server: {literal(verdict_sentence)} ({result.seeds} seeds).{literal(same)} {by}"
    )
    if ships is None:
        figure(claim, result)
        numbers(claim, result)
