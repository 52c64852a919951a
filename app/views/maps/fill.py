"""The maps' charts and summary, the button that fills them, and how far they are."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from normviz.charts.map import Map, colours, legend
from normviz.config import estimated_seconds
from normviz.formats import duration
from normviz.runs.engines import computed_by
from normviz.runs.store.cells import OpenCells
from normviz.studies.maps import Cell
from normviz.studies.maps.layout import maps
from normviz.studies.maps.points import TRAINS
from normviz.studies.maps.results import GridResults

from ...session.backend import SharedBackend, shared
from ...session.markdown import capital
from ...session.policy import policy
from ...widgets import cells, glossary
from ...widgets.buttons import button
from ...widgets.polling import poll
from . import charts
from .state import Maps

SHORTER = "give fewer values or steps, or run the command below in a terminal"
MARKS = (
    "Colour: the mean [[loss]] of the last tenth of the steps, at most [[chance]]. × [[diverged]] · ▼ "
    "in most [[seed|seeds]] the loss still fell at the last step: what more steps would give was not "
    "measured. {}{} "
    "Point at a cell for its loss curves. A click or a tap on it opens its run in the duel."
)
LINE = "The line ([[frontier]]) is the largest learning rate that trains. "
"""What is said of the frontier, where it is drawn."""


def show(page_maps: Maps, backend: SharedBackend) -> None:
    """A row with what fills the maps, then the maps, in a fragment that polls while they fill."""
    results = looked(page_maps, backend)
    keys = _keys(page_maps)
    opened = cells.opened(keys, backend)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="map_state"):
        state = st.empty()
        if left := [c for c in results.missing if opened is None or c.key not in opened.runs]:
            _offer(page_maps, left)
        cells.stop_button(opened, keys, backend, "stop_fill", "Fill again")
    with st.container(key="maps"):
        poll(_tick, cells.TICK_SECONDS, opened is not None, page_maps, state)


def looked(page_maps: Maps, backend: SharedBackend) -> GridResults:
    """The maps' cells that the store has now."""
    if page_maps.results is None:
        page_maps.results = GridResults(backend.store, page_maps.asked.grid)
    page_maps.results.refresh()
    return page_maps.results


def _keys(page_maps: Maps) -> list[str]:
    return [cell.key for cell in page_maps.asked.grid.cells]


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
    """How many maps there are."""
    across, up = page_maps.asked.axes
    places = {cell.at for cell in page_maps.asked.grid.cells}
    return len(places) // (len(across.values) * len(up.values))


def _fill(page_maps: Maps) -> None:
    backend = shared()
    # The settings may have changed at the moment of the click, after the button was rendered.
    configs = [cell.config for cell in looked(page_maps, backend).missing]
    cells.ask(page_maps, configs, "map", backend)


def _tick(page_maps: Maps, state: DeltaGenerator) -> bool:
    """The maps, what became of their cells, and whether some are open. `state` is a place above the maps."""
    backend, keys = shared(), _keys(page_maps)
    opened = cells.opened(keys, backend)  # before the results, so that none that ends now is missed
    results = looked(page_maps, backend)
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
        cells.failures(keys, backend, "Fill again")
    picked = charts.charts(page_maps, drawn, is_filling=opened is not None)
    glossary.caption(MARKS.format(LINE if any(panel.frontier for panel in drawn) else "", TRAINS))
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
        cells.progress(opened, missing, total)
    elif points:
        by = computed_by((point.engine for point in points), "cells")
        st.caption(by if missing else f"All {total} runs are stored. {by}")
