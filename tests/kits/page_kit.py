"""The page on a store of its own, without a browser and without a supervisor: AppTest."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copyfile
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from filelock import FileLock
from normviz.app.session import backend
from normviz.app.session.training import SWITCH
from streamlit.components.v2 import manifest_scanner
from streamlit.config import set_option
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, ElementTree
from streamlit.util import calc_hash

from normviz.execution.client import SupervisorClient
from normviz.home import VARIABLE, shipped
from normviz.runs.archive import load
from normviz.runs.shipped import adopt
from normviz.runs.store import Store
from normviz.runs.store.schema import FILE

MAIN = str(shipped("app") / "page.py")
VIEWS = (
    "duel", "maps", "claims", "choose", "tour", "assignments", "catalogue", "hand", "own-model", "runs",
)  # fmt: skip
ADDRESSES = {"hand": "by-hand"}
Open = Callable[..., AppTest]
# AppTest reads the metadata of every installed package for each new session: once is enough.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# Streamlit collects garbage after each run of a script, and clears Keras where another test has loaded it:
# up to half a second. A server freezes what it has loaded, and has no Keras.
set_option("runner.postScriptGC", False)
script_runner._clean_problem_modules = lambda: None
_without_popovers = ElementTree.get_widget_states


def _with_popovers(tree: ElementTree) -> WidgetStates:
    """What a browser sends: AppTest leaves out which popovers are open."""
    states = _without_popovers(tree)
    for node in tree:
        sheet = getattr(getattr(node, "proto", None), "popover", None)
        if isinstance(node, Block) and sheet is not None and sheet.open:
            states.widgets.add(id=sheet.id, bool_value=True)
    return states


ElementTree.get_widget_states = _with_popovers


@pytest.fixture(scope="session")
def with_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store that has the shipped runs: to read them anew takes longer than a page."""
    return _filled(tmp_path_factory, "runs", adopt)


@pytest.fixture(scope="session")
def with_cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store that has the shipped cells of maps too; those of claims take as long again."""
    return _filled(tmp_path_factory, "cells", adopt, _adopt_maps)


def _filled(
    temporary: pytest.TempPathFactory, name: str, *adopted: Callable[[Store], None]
) -> Path:
    """Made once for all processes of the tests."""
    base = temporary.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            making = Path(f"{folder}.making")
            making.mkdir(exist_ok=True)
            store = Store(making)
            for each in adopted:
                each(store)
            store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            store.db.connection.close()
            making.rename(folder)
    return folder / FILE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_runs: Path) -> Path:
    """A data folder that the page uses. Its store has the shipped runs."""
    copyfile(with_runs, tmp_path / FILE)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(SupervisorClient, "ensure", lambda self: None)
    monkeypatch.setattr(backend, "adopt", _adopt)
    idle = SimpleNamespace(
        collect=lambda: 0, freeze=lambda: None
    )  # all of it at each start is slow
    monkeypatch.setattr(backend, "gc", idle)
    backend.forget()
    return tmp_path


def _adopt(store: Store) -> None:
    """What `adopt` does, where a store has no shipped run."""
    if not store.db.connection.execute("SELECT 1 FROM runs WHERE origin = 'shipped'").fetchone():
        adopt(store)


def _adopt_maps(store: Store) -> None:
    for path in sorted((shipped("assets") / "maps").glob("*.npz")):
        store.adopt_cells(list(load(path, store.done_keys())))


@pytest.fixture
def unpacked(folder: Path, monkeypatch: pytest.MonkeyPatch, with_cells: Path) -> Path:
    """The same with the shipped cells of maps."""
    copyfile(with_cells, folder / FILE)
    monkeypatch.setattr(backend.shipped, "adopt_cells", lambda *_: None)
    return folder


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


def settings_open(at: AppTest, *lanes: int) -> AppTest:
    """The page with the settings of these lanes open."""
    for lane in lanes:
        at.session_state[f"lane{lane}_open"] = True
    return checked(at.run())


def duel(at: AppTest):
    return at.session_state["duel"]


def words_of(element: Any) -> str:
    """What an element shows: its text without the marks that keep it from being Markdown."""
    return re.sub(r"\\(.)", r"\1", element.value)


def chips(at: AppTest) -> list[str]:
    return [words_of(m) for m in at.markdown if "-badge[" in m.value]


def parts(at: AppTest) -> list[dict]:
    """What the page gave its components."""
    return [json.loads(element.proto.json) for element in at.get("bidi_component")]


def shown(at: AppTest) -> dict:
    """What the page gave the player; the "runs" of its "topic" are null where a lane has none."""
    return next((part["what"] for part in parts(at) if part.get("what")), {"topic": {"runs": []}})


def address(at: AppTest) -> dict[str, str]:
    """The parameters of the address that the browser shows. Those that add an entry to its history are
    `at.query_params` too."""
    return _link(next(part for part in parts(at) if {"page", "query"} <= part.keys()))


def copied(at: AppTest) -> dict[str, str]:
    """The parameters of the link that *Copy link* gives."""
    return _link(next(part for part in parts(at) if part.get("label") == "Copy link"))


def _link(part: dict) -> dict[str, str]:
    return dict(parse_qsl(part["query"], keep_blank_values=True))


def runs(at: AppTest) -> list[int]:
    """The runs whose charts the page shows."""
    return [run for run in shown(at)["topic"]["runs"] if run is not None]


def specs(at: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in at.get("vega_lite_chart")]
