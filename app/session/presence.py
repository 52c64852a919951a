"""Reports the runs and cells that a page shows: a shared server stops those that no open page shows."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from normviz.runs import Run
from normviz.runs.store.cells import OpenCells

from . import visitor
from .backend import watchers


def begin() -> None:
    """Start a script run's report. The session's duel counts as shown on every page."""
    duel = st.session_state.get("duel")
    opened = (*duel.runs, *duel.extra, *(duel.left.runs if duel.left else ())) if duel else ()
    watchers().begin(visitor.session(), [run for run in opened if run is not None])


def runs(shown: Iterable[Run]) -> None:
    """Report that the page shows these runs."""
    watchers().has_open(visitor.session(), [run.id for run in shown if run.is_open])


def cells(shown: OpenCells | None) -> None:
    """Report that the page shows these cells."""
    if shown is not None:
        watchers().has_open(visitor.session(), shown.runs.values())
