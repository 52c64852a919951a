"""The anatomy on the Catalogue page, on a store of its own, without a browser and without a supervisor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from page_kit import Open, at_page, checked
from streamlit.testing.v1 import AppTest

from normviz import RunConfig, train
from normviz.runs.store import Store
from normviz.training.events import Diverged, Started, Step


@pytest.fixture
def anatomy(folder: Path) -> Open:
    """Opens the Catalogue page at a query string, as a new visitor."""

    def opened(query: str = "") -> AppTest:
        at = at_page("catalogue")
        for pair in filter(None, query.split("&")):
            name, _, value = pair.partition("=")
            at.query_params[name] = value
        return checked(at.run())

    return opened


def lanes(at: AppTest) -> list[tuple[str, int]]:
    return [(lane.scheme, lane.depth) for lane in at.session_state["anatomy"].lanes]


def said(at: AppTest) -> str:
    return " ".join(element.value for element in (*at.markdown, *at.caption))


def runs(folder: Path) -> list[tuple[str, int, str]]:
    """Scheme, steps and status of every run that was queued here."""
    store = Store(folder)
    rows = store.db.connection.execute("SELECT id FROM runs WHERE origin = 'here' ORDER BY id")
    found = [store.run(row["id"]) for row in rows.fetchall()]
    return [(run.config.scheme, run.config.steps, run.status) for run in found if run]


def measure(folder: Path, config: RunConfig) -> None:
    """Do what a worker does with a config's open run."""
    store = Store(folder)
    run = store.latest(config.key)
    number = run.id if run else store.enqueue(config)
    bad: Diverged | None = None
    for event in train(config):
        if isinstance(event, Started):
            store.started(number, event, os.getpid(), paused=False)
        elif isinstance(event, Step):
            store.append(number, [event])
        elif isinstance(event, Diverged):
            bad = event
    store.end(number, "diverged" if bad else "finished", bad)
