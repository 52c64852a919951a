"""What this page has open, told to the server: in hosted mode runs that nobody has open are stopped."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from normviz import hosted
from normviz.presence import Job
from normviz.store import Run

from . import visitor
from .backend import watchers


def begin() -> None:
    """The page is drawn anew. The duel of this visit counts as open on every page of it."""
    if hosted.limits() is not None:
        duel = st.session_state.get("duel")
        opened = (*duel.runs, *duel.extra) if duel else ()
        watchers().begin(visitor.session(), [run for run in opened if run is not None])


def runs(shown: Iterable[Run]) -> None:
    """The page shows these runs."""
    if hosted.limits() is not None:
        watchers().has_open(visitor.session(), [run.id for run in shown if run.is_open])


def job(shown: Job | None) -> None:
    """The page shows this job."""
    if hosted.limits() is not None:
        watchers().has_open(visitor.session(), job=shown)
