"""The page on a store of its own, without a browser and without a supervisor: AppTest."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from normviz.app.session import backend
from normviz.app.views.duel.by_itself import SWITCH
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from normviz.execution.client import SupervisorClient
from normviz.home import VARIABLE, shipped
from normviz.runs.shipped import adopt, adopt_cells
from normviz.runs.store import Store

MAIN = str(shipped("app") / "main.py")
VIEWS = (
    "duel", "maps", "claims", "choose", "anatomy", "catalogue", "hand", "cost", "own-model", "runs",
)  # fmt: skip
ADDRESSES = {"hand": "by-hand"}
Open = Callable[..., AppTest]
# AppTest reads the metadata of every installed package for each new session: once is enough.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that the page uses."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(SupervisorClient, "ensure", lambda self: None)
    monkeypatch.setattr(backend, "adopt", _adopt)
    monkeypatch.setattr(backend.shipped, "adopt_cells", _adopt_cells)
    backend.forget()
    return tmp_path


@cache
def _adopted(*shipped: Callable[[Store], None]) -> sqlite3.Connection:
    """A store with what ships, in memory: reading it again for each test takes longer than a page."""
    it = sqlite3.connect(":memory:", check_same_thread=False)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for each in shipped:
            each(store)
        store.db.connection.backup(it)
        store.db.connection.close()
    return it


def _rows(db: sqlite3.Connection) -> list[int]:
    """The number of rows of each table."""
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for (name,) in tables]


def _adopt(store: Store) -> None:
    """What `adopt` does. A store without rows becomes a copy of one that has the shipped runs."""
    db = store.db.connection
    adopt(store) if any(_rows(db)) else _adopted(adopt).backup(db)


def _adopt_cells(store: Store) -> None:
    """What `adopt_cells` does. A store with the shipped runs alone becomes a copy of one that has all."""
    db = store.db.connection
    fresh = _rows(db) == _rows(_adopted(adopt))
    _adopted(adopt, adopt_cells).backup(db) if fresh else adopt_cells(store)


@pytest.fixture
def page(folder: Path) -> Open:
    """Opens the page at a query string. A change of a setting trains nothing, unless `by_itself`."""

    def opened(query: str = "", by_itself: bool = False) -> AppTest:
        at = at_page("duel")
        at.session_state[SWITCH] = by_itself
        for pair in filter(None, query.split("&")):
            name, _, value = pair.partition("=")
            at.query_params[name] = value
        return checked(at.run())

    return opened


def at_page(url_path: str) -> AppTest:
    """A new visitor's session that begins at a page of the navigation; not run yet.

    AppTest opens other pages by their file, and these pages are functions. So it is told what it
    would know after a run: the page that the visitor is on.
    """
    at = AppTest.from_file(MAIN, default_timeout=120)
    at._finished_page_script_hash = calc_hash(url_path)
    return at


def view_at(view: str, params: dict[str, list[str]]) -> AppTest:
    """One of VIEWS, drawn with a link's query parameters."""
    at = at_page(ADDRESSES.get(view, view))
    for name, values in params.items():
        at.query_params[name] = values
    return at.run()


def checked(at: AppTest) -> AppTest:
    assert not at.exception, at.exception[0].message
    return at


def duel(at: AppTest):
    return at.session_state["duel"]


def words_of(element: Any) -> str:
    """What an element shows: its text without the marks that keep it from being Markdown."""
    return re.sub(r"\\(.)", r"\1", element.value)


def chips(at: AppTest) -> list[str]:
    return [words_of(m) for m in at.markdown if "-badge[" in m.value]


def shown(at: AppTest) -> dict:
    """What the page asked the player to show; its "runs" are null where a lane has none."""
    found = at.get("bidi_component")
    whats = [json.loads(element.proto.json).get("what") for element in found]
    return next((what for what in whats if what), {"runs": []})


def runs(at: AppTest) -> list[int]:
    """The runs whose charts the page shows."""
    return [run for run in shown(at)["runs"] if run is not None]


def specs(at: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in at.get("vega_lite_chart")]
