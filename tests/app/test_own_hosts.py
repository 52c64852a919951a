"""A server on one's own machine: which names it answers for, which hosts it asks, and how Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from browser_kit import answers, free_port, wait_for
from normviz.app.asgi.own_hosts import OwnHosts, is_own
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

UPGRADE = {
    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit",
}  # fmt: skip
SOCKETS = ("/_stcore/stream", "/normviz/numbers")


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
