"""What a script may send to a real server: messages, files, and how many of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import pytest
from backend_kit import wait_for
from browser_kit import server
from normviz.app.asgi import transport_limits, uploads
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

ADDRESS = "/_stcore/upload_file/{}/{}"
HEALTH = "/_stcore/health"
FILE = (
    b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nhello\r\n--x--\r\n',
    "multipart/form-data; boundary=x",
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all that follows."""
    with server(tmp_path_factory.mktemp("home")) as (address, _):
        yield address.removeprefix("http://")


def socket(host: str, path: str) -> ClientConnection:
    return connect(f"ws://{host}/{path}", max_size=None, compression=None)


def ended(line: ClientConnection) -> int | None:
    try:
        while True:
            line.recv(60)
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


def answered(host: str, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
    connection = HTTPConnection(host, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


@pytest.mark.slow
def test_a_large_message_ends_the_line_of_the_page(host: str) -> None:
    ask = BackMsg()
    ask.rerun_script.query_string = "x" * 4_000_001
    with socket(host, "_stcore/stream") as line:
        line.send(ask.SerializeToString())
        assert ended(line) == 1009


@pytest.mark.slow
def test_a_large_request_ends_the_line_of_the_numbers(host: str) -> None:
    with socket(host, "normviz/numbers") as line:
        line.send(json.dumps({"runs": [1], "probe": " " * 5_000}))
        assert ended(line) == 1009


@pytest.mark.slow
def test_the_answer_before_a_page_connects_names_the_browser(host: str) -> None:
    names = [c.partition("=")[0] for c in answered(host, "GET", HEALTH)[2].get_all("Set-Cookie")]
    assert len(names) == 2 and names[0] == "_streamlit_xsrf" and names[1].startswith("normviz_")


def put(host: str, page: str, name: str, headers: dict[str, str]) -> tuple[int, str]:
    return answered(host, "PUT", ADDRESS.format(page, name), FILE[0], **headers)[:2]


def opened(host: str, line: ClientConnection) -> tuple[str, dict[str, str]]:
    """A page's session, and the headers of its uploads."""
    cookie = answered(host, "GET", HEALTH)[2]["Set-Cookie"].partition(";")[0]
    ask = BackMsg()
    ask.rerun_script.query_string = ""
    line.send(ask.SerializeToString())
    page = ""
    while not page:
        data = line.recv(60)
        assert isinstance(data, bytes)
        page = ForwardMsg.FromString(data).new_session.initialize.session_id
    return page, {
        "Cookie": cookie, "X-Xsrftoken": cookie.partition("=")[2], "Content-Type": FILE[1],
    }  # fmt: skip


def test_pages_hold_some_files_and_no_more(host: str) -> None:
    with socket(host, "_stcore/stream") as line:
        page, headers = opened(host, line)
        names = [f"file-{i}" for i in range(uploads.MOST)]
        assert {put(host, page, name, headers)[0] for name in names} == {204}
        status, said = put(host, page, "one-more", headers)
        assert status == 429 and "40 uploaded files are not used yet" in said and "\n" not in said
        gone = answered(host, "DELETE", ADDRESS.format(page, "file-1"), **headers)
        assert gone[0] == 204 and put(host, page, "one-more", headers)[0] == 204


def test_files_that_are_on_their_way_count() -> None:
    may, coming = threading.Event(), []

    async def keep(request: Request) -> Response:
        coming.append(request)
        await asyncio.to_thread(may.wait, 60)
        return Response(status_code=204)

    route = Route(ADDRESS.format("{page}", "{name}"), keep, methods=["PUT"])
    app = Starlette(routes=[route], middleware=[Middleware(uploads.Uploads)])
    with TestClient(app) as client, ThreadPoolExecutor(uploads.MOST) as pool:
        send = lambda i: client.put(ADDRESS.format("page", i))  # noqa: E731
        asked = [pool.submit(send, i) for i in range(uploads.MOST)]
        wait_for(lambda: len(coming) == uploads.MOST, "that all are on their way")
        away = send("more").status_code
        may.set()
        assert [one.result().status_code for one in asked] == [204] * uploads.MOST
        assert send("after").status_code == 204
    assert away == 429


def test_a_shared_server_takes_no_file() -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("its content was read")

    answer = TestClient(uploads.Uploads(never, takes=False)).put(ADDRESS.format("page", "f"))
    assert answer.status_code == 403 and "takes no files" in answer.text


def test_what_was_used_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

    kept = MemoryUploadedFileManager("/here")
    for name in ("a", "b"):
        kept.add_file("page", UploadedFileRec(name, name, "text/plain", b"x"))
    monkeypatch.setattr(uploads, "_manager", lambda: kept)
    monkeypatch.setattr("normviz.app.session.visitor.session", lambda: "page")
    urls: Any = None
    uploads.used(UploadedFile(kept.get_files("page", ["a"])[0], urls))
    assert uploads._stored() == 1 and [*kept.file_storage["page"]] == ["b"]


def test_the_settings_bound_what_comes_in() -> None:
    """And a text that is allowed fits, however many bytes its characters take."""
    import tomllib

    from normviz.app.views.duel import own_text

    from normviz.home import shipped
    from normviz.limits import MAX_TEXT_BYTES

    text = (shipped("app") / ".streamlit" / "config.toml").read_text()
    said = tomllib.loads(text)["server"]
    assert said["maxMessageSize"] <= 20 and said["maxUploadSize"] == 1
    # A browser counts UTF-16 units, of which one takes up to three bytes; beyond the box nothing that
    # Streamlit cuts could be used.
    assert MAX_TEXT_BYTES < own_text.BOX and transport_limits.MESSAGE > 4 * MAX_TEXT_BYTES
    assert 3 * own_text.BOX + 200_000 < said["maxWidgetStateSize"] * 10**6 <= 4 * 10**6
