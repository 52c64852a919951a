"""The maps' charts and summary, the job that fills them, and its progress."""

from __future__ import annotations

import streamlit as st

from normviz.config import estimated_seconds
from normviz.formats import duration
from normviz.policy import Refused
from normviz.runs.engines import computed_by
from normviz.studies.maps import Cell
from normviz.studies.maps.fill import MapJob
from normviz.studies.maps.layout import maps
from normviz.studies.maps.results import GridResults

from ...session import presence, visitor
from ...session.backend import SharedBackend, adopt_cells, shared
from ...session.markdown import capital, literal, sentence
from ...session.policy import policy
from ...widgets import glossary
from ...widgets.buttons import button
from ...widgets.polling import poll
from . import charts
from .state import Maps

TICK_SECONDS = 0.5
SHORTER = "give fewer values or steps, or run the command below in a terminal"
MARKS = (
    "Colour: the mean [[loss]] of the last tenth of the steps, at most [[chance]]. × [[diverged]] · ○ "
    "stopped early, because the loss stayed at chance · ▼ the loss was still falling: undertrained, not "
    "unstable. The line ([[frontier]]) is the largest learning rate that trains: the loss comes at least "
    "half of the way from chance to the [[floor]]. Point at a cell for its loss curves. Click it to open "
    "its run in the duel."
)


def show(page_maps: Maps, backend: SharedBackend) -> None:
    """The button to fill the maps, then the maps, in a fragment that polls while they fill."""
    with st.spinner("Unpacking the runs that ship"):
        adopt_cells({cell.key for cell in page_maps.asked.grid.cells})
    results = looked(page_maps, backend)
    job = backend.map_jobs.job(page_maps.asked.grid, page_maps.early)
    _actions(page_maps, results, job, backend)
    with st.container(key="maps"):
        poll(_tick, TICK_SECONDS, job is not None, page_maps)


def looked(page_maps: Maps, backend: SharedBackend) -> GridResults:
    """The maps' cells that the store has now."""
    if page_maps.results is None:
        page_maps.results = GridResults(backend.store, page_maps.asked.grid, page_maps.early)
    page_maps.results.refresh()
    return page_maps.results


def _actions(
    page_maps: Maps, results: GridResults, job: MapJob | None, backend: SharedBackend
) -> None:
    missing = results.missing
    if job is None and not missing:
        return
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="fill_row"
    ):  # fmt: skip
        if job is None:
            _offer(page_maps, missing, backend)
        elif job in page_maps.jobs and visitor.steers(job):
            button("Stop", backend.map_jobs.stop, job, key="stop_fill", icon=":material/stop:",
                   help="Finished runs are kept. Fill again to continue.")  # fmt: skip


def _offer(page_maps: Maps, missing: list[Cell], backend: SharedBackend) -> None:
    """The button to fill the missing cells, with an estimate of the time, or why it is disabled."""
    processes = backend.map_jobs.processes
    seconds = sum(estimated_seconds(cell.config) for cell in missing) / processes
    too_long = policy().may_take("map", seconds)
    button("Fill the map" + ("s" if _count(page_maps) > 1 else ""), _fill, page_maps, backend, type="primary",
           key="fill", icon=":material/play_arrow:", disabled=bool(too_long))  # fmt: skip
    stored = len(page_maps.asked.grid.cells) - len(missing)
    words = f"{len(missing)} runs, about {duration(seconds)} in {processes} process{'es' * (processes > 1)}"
    words += f"; {stored} are stored already." if stored else "."
    more = f"{capital(too_long)}: {SHORTER}." if too_long else policy().maps_summary()
    st.caption(f"{words} {more}".strip())
    if page_maps.refused:
        st.error(page_maps.refused)


def _count(page_maps: Maps) -> int:
    return len({cell.at for cell in page_maps.asked.grid.cells}) // max(
        1, len(_axis(page_maps, page_maps.asked.across)) * len(_axis(page_maps, page_maps.asked.up))
    )


def _axis(page_maps: Maps, field: str) -> tuple:
    axis = page_maps.asked.grid.axis(field)
    return axis.values if axis else ()


def _fill(page_maps: Maps, backend: SharedBackend) -> None:
    page_maps.refused = None
    try:
        page_maps.jobs.append(
            backend.map_jobs.request(
                page_maps.asked.grid, page_maps.early, visitor.me(), visitor.address()
            )
        )
    except Refused as why:
        page_maps.refused = sentence(str(why))


def _tick(page_maps: Maps) -> bool:
    """The maps, what became of the sweep, and whether it goes on."""
    backend = shared()
    results, job = (
        looked(page_maps, backend),
        backend.map_jobs.job(page_maps.asked.grid, page_maps.early),
    )
    presence.job(job)
    if job:
        _progress(job, backend)
    for asked in page_maps.jobs:
        if asked.why and asked.grid == page_maps.asked.grid:
            st.info(f"Filling was stopped: {asked.why}. Finished runs are kept.")
        for why in dict.fromkeys(asked.failures):
            if asked.grid == page_maps.asked.grid:
                st.error(f"A cell could not be trained: {literal(why)}. Fill again to retry.")
    drawn = maps(
        page_maps.asked.grid,
        results.points,
        page_maps.asked.fields,
        job.running if job else (),
        results.curve,
    )
    picked = charts.charts(page_maps, drawn, is_filling=job is not None)
    glossary.caption(MARKS)
    if points := results.points:
        st.caption(computed_by((point.engine for point in points), "cells"))
    charts.show_summary(page_maps, results)
    charts.reach(page_maps, drawn)
    if picked:
        charts.open_run(page_maps, picked, backend)
    return job is not None


def _progress(job: MapJob, backend: SharedBackend) -> None:
    if n := backend.map_jobs.before(job):
        st.caption(
            f"Waits for {n} other map{'s' * (n > 1)} that {'are' if n > 1 else 'is'} being filled."
        )
        return
    if job.waits:
        st.caption("Waits for another visitor's claim.")
        return
    words = f"{job.ended} of {job.todo} runs" if job.began else "Loading PyTorch"
    if (left := job.seconds_left) is not None:
        words += f", about {duration(left)} left"
    st.progress(min(1.0, job.share), words)
