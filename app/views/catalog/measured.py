"""The charts of measurements at initialisation: runs of 0 steps, queued if the store lacks them."""

from __future__ import annotations

import time

import streamlit as st

from normviz import charts, formats
from normviz.catalog import PROBES, SCHEMES
from normviz.config import is_quick
from normviz.lessons.anatomy.untrained import NAMES
from normviz.policy import Refused
from normviz.runs import Run
from normviz.runs.lane import stored_lane
from normviz.runs.store.queue import enqueue

from ...session import presence, visitor
from ...session.backend import SharedBackend, shared
from ...session.markdown import literal
from ...widgets.chart import chart
from ...widgets.polling import poll
from .state import Anatomy

TICK_SECONDS = 0.15
MOMENT_SECONDS, LOOK_SECONDS = 1.0, 0.01
QUANTITIES = ("stream_rms", "grad_block", "token_cosine")


def queued_runs(page_anatomy: Anatomy, backend: SharedBackend) -> list[Run]:
    """The runs of the configs on the page. One that is missing or was stopped is queued, and one that failed
    once by each visitor."""
    runs, page_anatomy.refused = [], None
    for config in page_anatomy.lanes:
        run = backend.store.latest(config.key)
        if (
            run is None
            or run.status == "stopped"
            or (run.status == "failed" and config.key not in page_anatomy.asked)
        ):
            try:
                (number,) = enqueue(
                    backend.store, [config], visitor.me(), address=visitor.address()
                )
            except Refused as why:
                page_anatomy.refused = str(why)
                continue
            run = backend.store.run(number)
            assert run is not None
            page_anatomy.asked.add(config.key)
            if run.visitor == visitor.me():  # a run that another visitor queued stays theirs
                page_anatomy.mine.add(run.id)
        runs.append(run)
    presence.runs(runs)
    return runs


def leave(page_anatomy: Anatomy, backend: SharedBackend, wanted: list[Run]) -> None:
    """Stop runs that this visitor queued and that the page no longer shows, to free the queue.

    A quick measurement that has started may finish: to stop it takes as long, and costs a warm worker.
    """
    for number in page_anatomy.mine - {run.id for run in wanted}:
        run = backend.store.run(number)
        if run is None or backend.watchers.others(visitor.session(), number):
            continue
        if run.status == "queued" or not is_quick(run.trained):
            backend.store.control(number, "stop")
    page_anatomy.mine &= {run.id for run in wanted}


def show(page_anatomy: Anatomy, runs: list[Run]) -> None:
    """The charts, once the runs have ended. After `MOMENT_SECONDS` a fragment polls until then."""
    with st.container(key="measured"):
        title = st.empty()
        if _open(runs):
            title.markdown("## Measuring at initialisation ...")
            runs = _after_a_moment(page_anatomy, shared(), runs)
        title.markdown("## Measured at initialisation")
        if page_anatomy.refused:
            st.error(f"Not measured here: {page_anatomy.refused}.")
        poll(_tick, TICK_SECONDS, _open(runs), page_anatomy)


def _after_a_moment(page_anatomy: Anatomy, backend: SharedBackend, runs: list[Run]) -> list[Run]:
    """Wait up to `MOMENT_SECONDS` for the runs to end, so that this script run can draw the curves and
    neither the fragment nor another script run is needed."""
    until, seen = time.monotonic() + MOMENT_SECONDS, backend.store.version()
    _, warm = backend.store.supervisor()
    runs = _latest(page_anatomy, backend)  # they may have ended before that version
    while warm and _open(runs) and time.monotonic() < until:
        if seen == (seen := backend.store.version()):
            # Reading the session state ends this script run if a click has requested another.
            _ = "measuring" in st.session_state
            time.sleep(LOOK_SECONDS)
        else:
            runs = _latest(page_anatomy, backend)
    return _latest(page_anatomy, backend)


def _latest(page_anatomy: Anatomy, backend: SharedBackend) -> list[Run]:
    return [run for config in page_anatomy.lanes if (run := backend.store.latest(config.key))]


def _open(runs: list[Run]) -> bool:
    return any(run.is_open for run in runs)


def _tick(page_anatomy: Anatomy) -> bool:
    """The measurements, and whether some are still made."""
    backend = shared()
    runs = _latest(page_anatomy, backend)
    _status(page_anatomy, runs, backend)
    if len(runs) == len(page_anatomy.lanes) and all(run.is_done for run in runs):
        page_anatomy.drawn = tuple(run.id for run in runs)
    _charts(page_anatomy, backend)
    return _open(runs)


def _status(page_anatomy: Anatomy, runs: list[Run], backend: SharedBackend) -> None:
    """One line: what is being measured, the losses, or why there are none."""
    failed = [(i, run) for i, run in enumerate(runs) if not (run.is_done or run.is_open)]
    for i, run in failed:
        why = f": {run.message}" if run.message else ""
        st.error(literal(f"{_name(i, run)} could not be measured{why}."))
    if failed:
        st.button("Measure again", on_click=page_anatomy.asked.clear, key="measure_again")
        return
    if _open(runs):
        _, warm = backend.store.supervisor()
        waits = all(run.status == "queued" for run in runs if run.is_open)
        doing = "Measuring" if warm or not waits else "Loading PyTorch in a worker, then measuring"
        st.caption(f"{doing}: {_blocks(runs)} ...")
        return
    if len(runs) < len(page_anatomy.lanes):  # refused: the error is shown above
        return
    losses = [f"{NAMES[i]} {_loss(run, backend)}" for i, run in enumerate(runs)]
    chance = next((f"; chance {run.started.chance:.2f}" for run in runs if run.started), "")
    st.caption(f"{_blocks(runs)}, first batch, 1 seed. Loss {', '.join(losses)}{chance} nats.")


def _name(i: int, run: Run) -> str:
    return f"{NAMES[i]}  {SCHEMES.label(run.config.scheme)}"


def _blocks(runs: list[Run]) -> str:
    sizes = [f"{run.config.depth} blocks of width {run.config.width}" for run in runs]
    return " and ".join(dict.fromkeys(sizes))


def _loss(run: Run, backend: SharedBackend) -> str:
    losses = backend.frames.steps(run).loss
    return formats.loss(losses[0]) if len(losses) else "not finite"


def _charts(page_anatomy: Anatomy, backend: SharedBackend) -> None:
    runs = [run for number in page_anatomy.drawn if (run := backend.store.run(number))]
    if not runs:
        return
    lanes = [stored_lane(_name(i, run), run, backend.frames) for i, run in enumerate(runs)]
    for probe in QUANTITIES:
        record = PROBES[probe]
        st.markdown(
            f"### {record.axis_label.partition(' (')[0]}",
            help=f"{record.definition} ({record.source})",
        )
        finding = charts.layers.finding(lanes, probe)
        chart(charts.layers.chart(lanes, probe), finding, f"layers_{probe}")
