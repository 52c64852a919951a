"""Running a claim on this server: the button, the progress, and the verdict beside the shipped one."""

from __future__ import annotations

import streamlit as st

from normviz.formats import duration
from normviz.policy import Refused
from normviz.runs.engines import computed_by
from normviz.studies.claims import Claim
from normviz.studies.claims.sentences import expected
from normviz.studies.claims.server_jobs import ClaimJob
from normviz.studies.claims.stored import ClaimResult, shipped_result

from ...session import presence, visitor
from ...session.backend import SharedBackend
from ...session.markdown import literal, sentence
from ...session.policy import policy
from ...widgets.buttons import button
from ...widgets.polling import poll
from .result import figure, numbers

TICK_SECONDS = 0.5


def show(claim: Claim, backend: SharedBackend) -> None:
    """The button to run or stop the claim, then its progress, in a fragment that polls while it runs."""
    job = backend.claim_jobs.job(claim)
    is_open = job is not None and job.is_open
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if job is None or not is_open:
            _offer(claim, backend)
        elif visitor.steers(job):
            button("Stop", backend.claim_jobs.stop, job, key=f"stop_{claim.key}", icon=":material/stop:",
                   help="Finished runs are kept. Run it again to continue.")  # fmt: skip
    if why := st.session_state.pop("claim_refused", None):
        st.error(sentence(why))
    poll(_tick, TICK_SECONDS, is_open, claim, backend)


def _offer(claim: Claim, backend: SharedBackend) -> None:
    """The button to run the claim, with an estimate of the time, or why it can't run here."""
    processes = backend.claim_jobs.processes
    seconds = expected(claim, shipped_result(claim), None, processes)
    why = policy().may_take("claim", seconds)
    too_long = f" Not here: {why}." if why else ""
    button("Run it here", _run, claim, backend, type="primary", key=f"run_{claim.key}",
           icon=":material/play_arrow:", disabled=bool(too_long))  # fmt: skip
    st.caption(
        f"{len(claim.cells())} runs, at most about {duration(seconds)} in {processes} "
        f"process{'es' * (processes > 1)}. Uses runs that finished here before, not the shipped "
        f"ones.{too_long}"
    )


def _run(claim: Claim, backend: SharedBackend) -> None:
    try:
        backend.claim_jobs.request(claim, visitor.me(), visitor.address())
    except Refused as why:
        st.session_state["claim_refused"] = str(why)


def _tick(claim: Claim, backend: SharedBackend) -> bool:
    """How the experiment goes or how it ended, and whether it goes on."""
    job = backend.claim_jobs.job(claim)
    if job is None:
        return False
    if job.is_open:
        presence.job(job)
        _progress(job, backend)
    elif job.why:
        st.info(f"It was stopped: {job.why}. Finished runs are kept. Run it again to continue.")
    elif job.failures:
        st.error(f"{literal(job.failures[0])}. Run it again to retry.")
    elif job.result is not None:
        _came_out(claim, job.result)
    return job.is_open


def _progress(job: ClaimJob, backend: SharedBackend) -> None:
    if n := backend.claim_jobs.before(job):
        st.caption(f"Waits for {n} other claim{'s' * (n > 1)}.")
        return
    if job.waits:
        st.caption("Waits for another visitor's map.")
        return
    words = f"{job.ended} of {job.total} runs" if job.ended else "Loading PyTorch"
    if (left := job.seconds_left) is not None:
        words += f", about {duration(left)} left"
    st.progress(job.share, words)


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
