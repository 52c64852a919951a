"""A file that is made at the click is there when the browser asks for it, however busy the server is."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import streamlit as st
from normviz.app.widgets import download as downloads
from normviz.app.widgets.download import KEPT, download
from streamlit import runtime
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage


@pytest.fixture
def click(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bytes]:
    """Presses the button of a file that holds this text, and fetches it after others ran their pages."""
    files = MemoryMediaFileStorage("/media")
    manager = MediaFileManager(files)
    made = []
    monkeypatch.setattr(downloads, "_SIZES", {})
    monkeypatch.setattr(runtime, "exists", lambda: True)
    monkeypatch.setattr(runtime, "get_instance", lambda: SimpleNamespace(media_file_mgr=manager))
    monkeypatch.setattr(
        st, "download_button", lambda label, data, *more, **named: made.append(data)
    )
    addresses: dict[str, str] = {}

    def fetched(text: str) -> bytes:
        if text not in addresses:
            download("Numbers", lambda: text, "numbers.csv", "text/csv")
            button = manager.add_deferred(made[-1], "text/csv", "place", "numbers.csv")
            addresses[text] = manager.execute_deferred(button)
        for _ in range(3):
            manager.remove_orphaned_files()
        return files.get_file(addresses[text].rsplit("/", 1)[1]).content

    return fetched


def test_a_file_outlives_the_runs_of_other_pages(click: Callable[[str], bytes]) -> None:
    assert click("a,b") == b"a,b"


def test_one_file_is_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that asks for many at once leaves the other pages their time."""
    made, now, most = list[Callable[[], bytes]](), [0], [0]
    monkeypatch.setattr(
        st, "download_button", lambda label, data, *more, **named: made.append(data)
    )

    def make() -> bytes:
        now[0] += 1
        most[0] = max(most[0], now[0])
        time.sleep(0.01)
        now[0] -= 1
        return b""

    for _ in range(8):
        download("Numbers", make, "numbers.csv", "text/csv")
    with ThreadPoolExecutor(8) as pool:
        assert len([*pool.map(lambda one: one(), made)]) == 8
    assert most == [1]


def test_the_server_keeps_the_last_files_only(click: Callable[[str], bytes]) -> None:
    assert click("first") == b"first"
    for n in range(KEPT - 1):
        click(f"{n}")
    assert click("first") == b"first"
    click("one more")
    with pytest.raises(MediaFileStorageError):
        click("first")


def test_the_bytes_of_kept_files_have_an_end(
    click: Callable[[str], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "KEPT_BYTES", 25)
    files = [f"file {n} of ten" for n in range(3)]
    for n, text in enumerate(files):
        assert len(text) == 13 and click(text) == text.encode()
        assert sum(downloads._SIZES.values()) == 13, n
        for gone in files[:n]:
            with pytest.raises(MediaFileStorageError):
                click(gone)
    large = "larger than all that may be kept"
    assert click(large) == large.encode()
