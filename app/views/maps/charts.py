"""The maps as charts, with their findings in words, and two ways to open a cell's run.

A cell opens by a click, or by a form with its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from normviz.charts.base import Spec
from normviz.charts.map import CELL, PICK, Map, colours, finding, live
from normviz.config import RANGES, SETTINGS
from normviz.runs.statistics import spread
from normviz.studies.maps.layout import axis_of
from normviz.studies.maps.results import GridResults
from normviz.studies.maps.summary import (
    Sensitivity,
    comparisons,
    edge_rows,
    place_name,
    sensitivity,
)

from ...session.backend import SharedBackend, shared
from ...session.markdown import literal
from ...widgets import glossary, page_links
from ...widgets.chart import chart
from .state import Maps

PER_ROW = 3
AROUND = 99
"""Pixels of a map's title and axis."""


def charts(page_maps: Maps, drawn: list[Map], is_filling: bool) -> str | None:
    """Show the maps in rows. Returns the key of the cell that was clicked.

    The alternative text describes a map only once it is filled: new text would rebuild the chart.
    """
    picked = None
    # Room for what is not drawn yet.
    height = max(CELL[1] * len(panel.rows) for panel in drawn) + AROUND
    st.html(f"<style>.st-key-maps .stColumn {{ min-height: {height}px; }}</style>")
    domain, dark = colours(drawn), st.context.theme.type == "dark"
    per_row = 2 if len(drawn) in (1, 2, 4) else PER_ROW
    for at in range(0, len(drawn), per_row):
        for i, (column, panel) in enumerate(
            zip(st.columns(per_row), drawn[at : at + per_row], strict=False), start=at
        ):
            with column:
                event = chart(
                    _patient(live(panel, i, domain, dark)),
                    panel.title if is_filling else finding(panel), f"map_{page_maps.nonce}_{i}",
                    on_select="rerun", selection_mode=[PICK],
                )  # fmt: skip
            picked = _picked(event) or picked
    return picked


def _picked(event: Any) -> str | None:
    """The key of the cell that was clicked. Ignores any selection that is not a cell."""
    selection = event["selection"]
    rows = selection.get(PICK) if isinstance(selection, Mapping) else None
    if not isinstance(rows, list | tuple) or not rows or not isinstance(rows[-1], Mapping):
        return None
    key = rows[-1].get("key")
    return key if isinstance(key, str) else None


def _patient(spec: Spec) -> Spec:
    """The chart with its rows as data frames: Streamlit then replaces the rows without a rebuild of the
    chart, as long as the rest stays the same."""
    columns = {"frontier": ["x", "y", "at"]}
    tables = {
        name: pd.DataFrame(rows, columns=columns.get(name.rstrip("0123456789")))
        for name, rows in spec["datasets"].items()
    }
    return {**spec, "datasets": tables}


def open_run(page_maps: Maps, key: str, backend: SharedBackend) -> None:
    """Open a cell in the duel: its run, or only its settings if it has none."""
    cell = next((cell for cell in page_maps.asked.grid.cells if cell.key == key), None)
    page_maps.nonce += 1
    if cell is None:
        return  # the map's settings have changed since the click
    page_links.open_duel((cell.config,), backend)


def reach(page_maps: Maps, drawn: list[Map]) -> None:
    """A form that opens a cell by its settings, for use without a pointer."""
    first = drawn[0]
    with st.expander("Open a cell by its settings"), st.form("reach", border=False):
        left, middle, right, last = st.columns([2, 1, 1, 1], vertical_alignment="bottom")
        which = left.selectbox("Map", range(len(drawn)), format_func=lambda i: drawn[i].title)
        column = middle.selectbox(
            first.x, range(len(first.columns)), format_func=lambda i: first.columns[i]
        )
        row = right.selectbox(first.y, range(len(first.rows)), format_func=lambda i: first.rows[i])
        if last.form_submit_button("Open in the duel", width="stretch"):
            cells = (c for c in drawn[which].cells if (c.column, c.row) == (column, row))
            open_run(page_maps, next(cells).key, shared())


# Findings: the largest rates that train, sensitivity to the rate, best losses, and differences in words.

EDGES = (
    "The largest [[rate|learning rate]] of those tried at which half of the [[seed|seeds]] train, and in "
    "brackets between what rates the own limit of each seed lies{}. ≥: no larger rate was tried. None from a "
    "rate up: no lower one was tried. With more than {} steps more may train, above all where the loss still "
    "fell."
)


def show_edges(page_maps: Maps, results: GridResults) -> None:
    """The largest rates that train, as a table with an interval each, as far as the maps are filled."""
    grid = page_maps.asked.grid
    asked = page_maps.asked
    across = asked.up if asked.across == "lr" else asked.across
    if not (rows := edge_rows(grid, results.points, across, results.missing)):
        return
    word = f"{SETTINGS[across].title} " if across in RANGES else ""
    only = "" if grid.axis(across) else axis_of(grid, across).shown(getattr(grid.base, across))
    st.dataframe(
        [
            {"where": row or "all", **{f"{word}{value or only}": text for value, text in edges.items()}}
            for row, edges in rows.items()
        ],
        hide_index=True, row_height=36,
    )  # fmt: skip
    coverage = 100 * spread(range(grid.seeds)).coverage
    sure = f", an interval for the limit of half of all seeds with {coverage:.0f} % confidence"
    glossary.caption(EDGES.format(sure if grid.seeds > 1 else "", grid.base.steps))


SENSITIVITY = (
    "[[sensitivity|Sensitivity]] is the mean over the learning rates of min(loss, loss at "
    "initialisation) minus the best loss (Wortsman et al. 2023, "
    "[arXiv\\:2309.14322](https://arxiv.org/abs/2309.14322), section 2.2), in [[nat|nats]]: [[median]] "
    "over seeds, with their range. It misleads in two cases: it is near zero where no learning rate "
    "trains, and a low learning rate that only lacked steps counts as unstable."
)

DIFFERENCES = (
    "Each placement at its own best learning rate of those tried. Two count as different only if the "
    "difference has the same sign in every pair of seeds and its [[interval]] excludes zero. With many "
    "comparisons some will do so by chance."
)


def show_summary(page_maps: Maps, results: GridResults) -> None:
    """A table of sensitivities and best losses, and sentences on the differences, once it is open."""
    grid, points = page_maps.asked.grid, results.points
    if grid.axis("lr") is None and all(axis.is_ordered for axis in grid.axes):
        return
    summary = st.expander(
        "Learning-rate sensitivity, best losses and differences",
        key="maps_summary", on_change="rerun",
    )  # fmt: skip
    if not summary.open:
        return
    with summary:
        rows = sensitivity(grid, points)
        lines = list(comparisons(grid, points))
        if not rows and not lines:
            st.caption("Cells are missing: sensitivity takes all learning rates of a row.")
        if rows:
            st.dataframe(
                [
                    {
                        "where": place_name(grid, row.place) or "all",
                        "sensitivity": row.value.text(),
                        "best loss": row.best.text(),
                        "at learning rate": f"{row.best_rate:g}",
                        "above the floor": "" if row.excess is None else row.excess.text(),
                        "note": _mind(row),
                    }
                    for row in rows
                ],
                hide_index=True, row_height=36,
            )  # fmt: skip
            glossary.caption(SENSITIVITY)
        if lines:
            st.markdown("\n".join(f"* {literal(line)}" for line in lines))
            glossary.caption(DIFFERENCES)


def _mind(row: Sensitivity) -> str:
    """A warning against misreading the row's sensitivity; empty without one."""
    warnings = ["trains at no rate in these steps"] if row.fails else []
    if row.falling:
        warnings.append("still falling at " + ", ".join(f"{rate:g}" for rate in row.falling))
    return "; ".join(warnings)
