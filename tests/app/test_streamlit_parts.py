"""Streamlit's private parts are as the pages expect them. For a new release this file is the first to run."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import streamlit
from crossing_kit import case
from normviz.app import streamlit_parts as parts
from normviz.app.asgi import first_paint, visitor_cookie
from streamlit.runtime import Runtime
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_routes
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from normviz.home import shipped

PUBLIC = {"streamlit.components.v2", "streamlit.delta_generator", "streamlit.navigation.page",
          "streamlit.testing.v1"}  # fmt: skip


PARTS = (
    (MediaFileManager, "add", "how it keeps files that are downloaded"),
    (Runtime, "media_file_mgr", "how it keeps files that are downloaded"),
    (streamlit, "__file__", "the HTML of its page"),
    (starlette_routes, "ROUTE_HEALTH", "the addresses of health, uploads and metrics"),
    (
        starlette_routes,
        "BASE_ROUTE_UPLOAD_FILE",
        "the addresses of health, uploads and metrics",
    ),
    (ScriptRunContext, "__dataclass_fields__", "the context of a script run"),
    (server_util, "net_util", "where it asks for this machine's address"),
    (Runtime, "is_active_session", "whether a page is still connected"),
    (Runtime, "__init__", "where it keeps its sessions"),
    (WebSocketsSansIOProtocol, "__init__", parts.SOCKETS),
)


def test_a_part_with_another_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for thing, name, part in PARTS:
        with case(name), monkeypatch.context() as patch:
            patch.delattr(thing, name)
            assert parts.changed() == [part]


def test_an_unknown_setting_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts.changed() == []
    monkeypatch.setattr(parts, "SETTINGS", ("server.noSuchSetting",))
    assert parts.changed() == ["the names of its settings"]


def test_every_private_import_and_every_setting_is_listed() -> None:
    found = set()
    for path in shipped("app").rglob("*.py"):
        if path.name == "streamlit_parts.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("streamlit."):
                found.add(node.module)
            elif isinstance(node, ast.ImportFrom) and node.module == "streamlit":
                assert {alias.name for alias in node.names} <= {"runtime"}, path
    assert found - PUBLIC == set(parts.IMPORTS)
    text = (shipped("app") / ".streamlit" / "config.toml").read_text()
    ours = {
        f"{section}.{name}" for section, values in tomllib.loads(text).items() for name in values
        if section != "theme"
    }  # fmt: skip
    read = set()
    for path in shipped("app").rglob("*.py"):
        read |= set(re.findall(r"get_option\(\s*\"([\w.]+)\"", path.read_text()))
    assert ours | read <= set(parts.SETTINGS)


def script() -> None:
    import streamlit as st
    from normviz.app.session.page_state import chosen
    from normviz.app.widgets import store_errors
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from normviz.runs.store import StoreError

    def request() -> None:
        context = get_script_run_ctx()
        assert context and context.script_requests
        context.script_requests.request_rerun(RerunData())

    def press(presses: list[str], word: str) -> None:
        request()
        presses.append(f"{word} {chosen('typed')}")

    def fail() -> None:
        request()
        raise StoreError("the disk is full")

    store_errors.begin()
    st.session_state.setdefault("presses", [])
    st.text_input("Typed", key="typed")
    st.button("Press", on_click=press, args=(st.session_state["presses"], "took"))
    st.button("Fail", on_click=store_errors.reported(fail))
    store_errors.show(st.container())


def test_a_request_in_a_callback_loses_nothing_of_it() -> None:
    """The request is that of another message of the browser, right after the press."""
    page = AppTest.from_function(script).run()
    page.text_input[0].set_value("depth")
    page.button[0].click().run()
    assert page.session_state["presses"] == ["took depth"]
    page.button[1].click().run()
    assert [error.value for error in page.error] == ["The disk is full."]
    assert not page.run().error


def test_the_pages_look_for_what_is_checked() -> None:
    assert f"/{starlette_routes.ROUTE_HEALTH}" == visitor_cookie.ADDRESS
    html = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    assert html.count(first_paint.TITLE) == html.count(first_paint.ROOT) == 1


def test_the_minor_release_that_was_tested_is_the_only_one_allowed() -> None:
    major, minor = map(int, version("streamlit").split(".")[:2])
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'"streamlit>={major}.{minor},<{major}.{minor + 1}"' in text
