"""A server on one's own machine: its names, what a script may send, how Ctrl-C ends it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from browser_kit import answers, free_port, wait_for
from normviz.app.asgi import websocket_limits
from normviz.app.asgi.own_hosts import OwnHosts, is_own
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

UPGRADE = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit",
}  # fmt: skip
SOCKETS = ("/_stcore/stream", "/normviz/numbers")
HEALTH = "/_stcore/health"


class Started:
    """`normviz app` on the loopback address, and the requests that it sends to a proxy of ours."""

    def __init__(self, folder: Path) -> None:
        self.port, self.asked = free_port(), list[bytes]()
        self.proxy = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._note, daemon=True).start()
        there = f"http://127.0.0.1:{self.proxy.getsockname()[1]}"
        environment = {
            **os.environ, "http_proxy": there, "https_proxy": there, "HTTP_PROXY": there,
            "HTTPS_PROXY": there, "no_proxy": "", "NO_PROXY": "",
        }  # fmt: skip
        self.said = folder / "said"
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "normviz", "app", "--no-browser", "--port", str(self.port),
                 "--data", str(folder / "data")],
                stdout=said, stderr=said, env=environment, start_new_session=True,
            )  # fmt: skip
        signal.signal(signal.SIGINT, handler)

    def _note(self) -> None:
        while True:
            try:
                line, _ = self.proxy.accept()
            except OSError:
                return
            with line:
                line.settimeout(5)
                self.asked.append(line.recv(1000))

    def status(self, path: str, host: str, **headers: str) -> int:
        line = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            line.request("GET", path, headers={"Host": host, **headers})
            return line.getresponse().status
        finally:
            line.close()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    it = Started(tmp_path_factory.mktemp("own"))
    try:
        wait_for(lambda: answers(f"http://127.0.0.1:{it.port}/_stcore/health"))
        yield it
    finally:
        it.proxy.close()
        if it.process.poll() is None:
            it.process.kill()
        it.process.wait()


@pytest.mark.slow
def test_a_foreign_name_gets_no_page_and_no_socket(started: Started) -> None:
    """As a page of another site has it that points its own name at this machine."""
    own = (f"localhost:{started.port}", f"127.0.0.1:{started.port}", socket.gethostname())
    for host, page, upgraded in [*((host, 200, 101) for host in own), ("evil.example", 421, 403)]:
        for path in ("/", "/maps", "/_stcore/health"):
            assert started.status(path, host) == page, (path, host)
        for path in SOCKETS:
            headers = {**UPGRADE, "Origin": f"http://{host}"}
            assert started.status(path, host, **headers) == upgraded, (path, host)


@pytest.mark.slow
def test_a_foreign_page_makes_the_server_ask_no_other_host(started: Started) -> None:
    """Streamlit would ask one for this machine's public address."""
    for path in SOCKETS:
        headers = {**UPGRADE, "Origin": "https://evil.example"}
        assert started.status(path, f"localhost:{started.port}", **headers) == 403
    assert started.asked == []


def line_to(started: Started, path: str) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{started.port}/{path}", max_size=None, compression=None)


def ended(line: ClientConnection) -> int | None:
    try:
        while True:
            line.recv(60)
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


@pytest.mark.slow
def test_a_large_message_ends_the_line_of_the_page(started: Started) -> None:
    ask = BackMsg()
    ask.rerun_script.query_string = "x" * 4_000_001
    with line_to(started, "_stcore/stream") as line:
        line.send(ask.SerializeToString())
        assert ended(line) == 1009


@pytest.mark.slow
def test_a_large_request_ends_the_line_of_the_numbers(started: Started) -> None:
    with line_to(started, "normviz/numbers") as line:
        line.send(json.dumps({"runs": [1], "probe": " " * 5_000}))
        assert ended(line) == 1009


@pytest.mark.slow
def test_the_answer_before_a_page_connects_names_the_browser(started: Started) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{started.port}{HEALTH}", timeout=60) as answer:
        names = [cookie.partition("=")[0] for cookie in answer.headers.get_all("Set-Cookie")]
    assert len(names) == 2 and names[0] == "_streamlit_xsrf" and names[1].startswith("normviz_")


@pytest.mark.slow
def test_ctrl_c_is_no_error(started: Started) -> None:
    """The last test of this server."""
    started.process.send_signal(signal.SIGINT)
    assert started.process.wait(30) in (0, 130)
    said = started.said.read_text()
    assert "localhost" in said and "Aborted" not in said and "Traceback" not in said


OWN = (
    "localhost", "LOCALHOST.:8501", "app.localhost:80", "[::1]:8501", f"{socket.gethostname()}.local",
    "192.168.1.7:8501",  # no name, so no other site has it
    "listed.example:1", "sub.wild.example",
)  # fmt: skip
FOREIGN = (
    "wild.example", "evil.example", "localhost.evil.example", "evillocalhost", "127.0.0.1.evil.example",
    "localhost@evil.example", "evil.example/localhost", "[::1", "",
)  # fmt: skip


def test_which_names_are_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import streamlit as st

    given = {"server.allowedHosts": ["Listed.example", "*.wild.example"], "server.address": None}
    monkeypatch.setattr(st, "get_option", given.__getitem__)
    assert [host for host in (*OWN, *FOREIGN) if is_own(host)] == [*OWN]


def test_a_public_name_is_refused_and_told_how_to_be_allowed() -> None:
    with TestClient(Starlette(middleware=[Middleware(OwnHosts)])) as client:
        refused = client.get("/", headers={"host": "public.example"})
        assert refused.status_code == 421 and "'public.example'" in refused.text
        assert "NORMVIZ_HOSTED=1" in refused.text


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
