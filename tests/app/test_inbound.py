"""What a script may send to a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from browser_kit import server
from normviz.app.asgi import websocket_limits
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

HEALTH = "/_stcore/health"


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
    assert MAX_TEXT_BYTES < own_text.BOX and websocket_limits.MESSAGE > 4 * MAX_TEXT_BYTES
    assert 3 * own_text.BOX + 200_000 < said["maxWidgetStateSize"] * 10**6 <= 4 * 10**6
