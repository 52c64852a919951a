"""The maps' charts and summary, the button that fills them, and how far they are."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from normviz.charts.map import Map, colours, legend
from normviz.config import estimated_seconds
from normviz.formats import duration
from normviz.policy import Refused
from normviz.runs.engines import computed_by
from normviz.runs.store import cells
from normviz.runs.store.cells import OpenCells
from normviz.studies.maps import Cell
from normviz.studies.maps.layout import maps
from normviz.studies.maps.results import GridResults

from ...session import presence, visitor
from ...session.backend import SharedBackend, shared
from ...session.markdown import capital, literal, sentence
from ...session.policy import policy
from ...widgets import glossary
from ...widgets.buttons import button
from ...widgets.cells import progress
from ...widgets.polling import poll
from . import charts
from .state import Maps

TICK_SECONDS = 0.5
SHORTER = "give fewer values or steps, or run the command below in a terminal"
MARKS = (
    "Colour: the mean [[loss]] of the last tenth of the steps, at most [[chance]]. × [[diverged]] · ▼ "
    "in most [[seed|seeds]] the loss still fell at the last step: what more steps would give was not "
    "measured. {}"
    "Point at a cell for its loss curves. A click or a tap on it opens its run in the duel."
)
LINE = "The line ([[frontier]]) is the largest learning rate that trains. "
"""What is said of the frontier, where it is drawn."""


def show(page_maps: Maps, backend: SharedBackend) -> None:
    """A row with what fills the maps, then the maps, in a fragment that polls while they fill."""
    results = looked(page_maps, backend)
    opened = _opened(page_maps, backend)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="map_state"
    ):  # fmt: skip
        state = st.empty()
        _actions(page_maps, results, opened, backend)
    with st.container(key="maps"):
        poll(_tick, TICK_SECONDS, opened is not None, page_maps, state)


def looked(page_maps: Maps, backend: SharedBackend) -> GridResults:
    """The maps' cells that the store has now."""
    if page_maps.results is None:
        page_maps.results = GridResults(backend.store, page_maps.asked.grid)
    page_maps.results.refresh()
    return page_maps.results


def _keys(page_maps: Maps) -> list[str]:
    return [cell.key for cell in page_maps.asked.grid.cells]


def _opened(page_maps: Maps, backend: SharedBackend) -> OpenCells | None:
    """The maps' cells that wait or train, whoever asked for them."""
    return cells.opened(backend.store, _keys(page_maps), visitor.me())


def _stop(page_maps: Maps, backend: SharedBackend) -> None:
    cells.stop(backend.store, _keys(page_maps), visitor.me())


def _actions(
    page_maps: Maps, results: GridResults, opened: OpenCells | None, backend: SharedBackend
) -> None:
    if left := [c for c in results.missing if opened is None or c.key not in opened.runs]:
        _offer(page_maps, left)
    if opened is not None and opened.may_stop:
        button("Stop", _stop, page_maps, backend, key="stop_fill", icon=":material/stop:",
               help="Finished runs are kept. Fill again to continue.")  # fmt: skip


def _offer(page_maps: Maps, left: list[Cell]) -> None:
    """The button to fill the cells that are left, with an estimate of the time, or why it is disabled."""
    processes = policy().cells_at_once
    seconds = sum(estimated_seconds(cell.config) for cell in left) / processes
    too_long = policy().may_take("map", seconds)
    button("Fill the map" + ("s" if _count(page_maps) > 1 else ""), _fill, page_maps, type="primary",
           key="fill", icon=":material/play_arrow:", disabled=bool(too_long))  # fmt: skip
    stored = len(page_maps.asked.grid.cells) - len(left)
    words = f"{len(left)} runs, about {duration(seconds)} in {processes} process{'es' * (processes > 1)}"
    words += f"; {stored} are stored already." if stored else "; none is stored yet."
    more = f"{capital(too_long)}: {SHORTER}." if too_long else policy().maps_summary()
    st.caption(f"{words} {more}".strip())


def _count(page_maps: Maps) -> int:
    across, up = page_maps.asked.axes
    cells = {cell.at for cell in page_maps.asked.grid.cells}
    return len(cells) // (len(across.values) * len(up.values))


def _fill(page_maps: Maps) -> None:
    page_maps.refused, backend = None, shared()
    try:
        # The settings may have changed at the moment of the click, after the button was rendered.
        configs = [cell.config for cell in looked(page_maps, backend).missing]
        cells.ask(backend.store, configs, "map", visitor.me(), visitor.address())
    except Refused as why:
        page_maps.refused = sentence(str(why))


def _tick(page_maps: Maps, state: DeltaGenerator) -> bool:
    """The maps, what became of their cells, and whether some are open. `state` is a place above the maps."""
    backend = shared()
    opened = _opened(
        page_maps, backend
    )  # before the results, so that no cell that ends now is missed
    results = looked(page_maps, backend)
    presence.cells(opened)
    drawn = maps(
        page_maps.asked.grid,
        results.points,
        page_maps.asked.fields,
        [cell for cell in page_maps.asked.grid.cells if opened and cell.key in opened.running],
        results.curve,
    )
    with state.container(horizontal=True, vertical_alignment="center", gap="small"):
        _state(drawn, results, opened)
    # A place that is there without a problem too: what is new would have all charts after it drawn anew.
    with st.container():
        if page_maps.refused:
            st.error(page_maps.refused)
        for why in cells.failures(backend.store, _keys(page_maps)):
            st.error(f"A cell could not be trained: {literal(why)}. Fill again to retry.")
    picked = charts.charts(page_maps, drawn, is_filling=opened is not None)
    glossary.caption(MARKS.format(LINE if any(panel.frontier for panel in drawn) else ""))
    charts.show_edges(page_maps, results)
    charts.show_summary(page_maps, results)
    charts.reach(page_maps, drawn)
    if picked:
        charts.open_run(page_maps, picked, backend)
    return opened is not None


def _state(drawn: list[Map], results: GridResults, opened: OpenCells | None) -> None:
    """How far the maps are, or what their colours mean."""
    missing, total = len(results.missing), len(results.grid.cells)
    points = results.points
    if points:
        st.html(legend(colours(drawn)), width="content")
    if opened:
        progress(opened, missing, total)
    elif points:
        by = computed_by((point.engine for point in points), "cells")
        st.caption(by if missing else f"All {total} runs are stored. {by}")
