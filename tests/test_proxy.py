"""The proxy that the container has before the app: what it bounds, what it adds, and how both end."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
import streamlit
from browser_kit import wait_for
from crossing_kit import case
from proxy_kit import DEPLOY, proxied

from normviz.export import preview

pytestmark = pytest.mark.slow

ECHO = """
import json, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        began = time.monotonic()
        self.rfile.read(size)
        said = {"path": self.path, "headers": dict(self.headers), "seconds": time.monotonic() - began}
        if "slow" in self.path:
            time.sleep(2)
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = answer

    def log_message(self, *words):
        pass

class Server(ThreadingHTTPServer):
    request_queue_size = 500

Server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Echo).serve_forever()
"""
"""It answers with what it was asked."""
SHORTER = {
    "client_header_timeout 10s": "client_header_timeout 1s",
    "client_body_timeout 10s": "client_body_timeout 1s",
    "limit_conn open 300": "limit_conn open 20",
    "limit_conn charts 150": "limit_conn charts 10",
    "limit_conn all_charts 500": "limit_conn all_charts 15",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "echo.py").write_text(ECHO)
    with proxied(folder, folder / "echo.py", SHORTER) as (url, _):
        yield url


def asked(url: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, answer and headers."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    method = "GET" if body is None else "PUT"
    try:
        request = urllib.request.Request(url, body, given, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read()), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, None, error.headers


def line(address: str, text: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    it = socket.create_connection((host, int(port)), timeout=20)
    it.sendall(text.encode())
    return it


def test_the_app_hears_the_address_that_connects_and_no_other(address: str) -> None:
    _, said, _ = asked(f"{address}/x", X_Forwarded_For="6.6.6.6", Forwarded="for=6.6.6.6")
    headers = said["headers"]
    assert headers["X-Forwarded-For"] == "127.0.0.1" and "Forwarded" not in headers
    assert headers["Host"] == address.removeprefix("http://")
    assert headers["X-Forwarded-Proto"] == "http"
    _, said, _ = asked(f"{address}/x", X_Forwarded_Proto="https")
    assert said["headers"]["X-Forwarded-Proto"] == "https"


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The proxy after another one of this machine, which is stated."""
    folder = tmp_path_factory.mktemp("stated")
    (folder / "echo.py").write_text(ECHO)
    believed = {"NORMVIZ_PROXY": "127.0.0.0/8 fd00::/8"}
    with proxied(folder, folder / "echo.py", SHORTER, **believed) as (url, _):
        yield url


def test_a_stated_proxy_before_it_is_believed(stated: str) -> None:
    """And of what that one passes on only the address that it saw itself."""
    _, said, _ = asked(f"{stated}/x", X_Forwarded_For="6.6.6.6, 9.9.9.9")
    assert said["headers"]["X-Forwarded-For"] == "9.9.9.9"


NETWORKS = (
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::7", True),
    ("2001:db8:5::7", "2001:db8:5:0:8::9", True),
    ("2001:db8::1", "2001:db8::2", True),
    ("2001:db8:6:2::7", "2001:db8:6:3::7", False),
    ("192.0.2.1", "192.0.2.2", False),
)


def test_the_addresses_of_one_network_are_one_client(stated: str) -> None:
    """An owner of IPv6 has 2**64 of them."""

    def taken(address: str) -> int:
        picture = f"{stated}/normviz/preview.png"
        with ThreadPoolExecutor(12) as pool:
            codes = pool.map(lambda _: asked(picture, X_Forwarded_For=address)[0], range(80))
        return [*codes].count(200)

    for first, second, share in NETWORKS:
        with case(first, second):
            assert taken(first) > 60
            assert (taken(second) < 40) == share


def test_answers_have_their_headers_once(address: str) -> None:
    for path, status in (("/", 200), ("/_stcore/metrics", 404), ("/maps/_stcore/metrics", 404)):
        code, _, headers = asked(address + path)
        assert code == status
        policy = headers["Content-Security-Policy"]
        assert "object-src 'none'" in policy and "frame-ancestors" not in policy
        assert headers.get_all("X-Content-Type-Options") == ["nosniff"]
        assert headers["Referrer-Policy"] == "same-origin" and headers["Server"] == "nginx"
        assert "X-Frame-Options" not in headers


def test_the_scripts_inline_are_those_of_the_page() -> None:
    """Browsers refuse to run any other: that of another release of Streamlit, or a changed one of ours."""
    html = (Path(streamlit.__file__).parent / "static" / "index.html").read_bytes()
    (inline,) = re.findall(rb"<script>(.*?)</script>", html, re.S)
    digests = [
        base64.b64encode(hashlib.sha256(script).digest()).decode()
        for script in (inline, preview.SCRIPT.encode())
    ]
    assert re.findall(r"'sha256-([^']*)'", (DEPLOY / "nginx.conf").read_text()) == digests


def test_bodies_and_headers_have_an_end(address: str) -> None:
    assert asked(f"{address}/x", b"x" * 16_000)[0] == 200
    assert asked(f"{address}/x", b"x" * 17_000)[0] == 413
    assert asked(f"{address}/?{'x' * 8_000}")[0] == 200
    assert asked(f"{address}/?{'x' * 20_000}")[0] == 414


def test_a_slow_client_takes_no_time_of_the_app(address: str) -> None:
    """Its body is taken whole first; headers and bodies that stop are cut off."""
    head = "PUT /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n"
    began = time.monotonic()
    with line(address, head) as slow:
        for letter in b"abcd":
            time.sleep(0.4)
            slow.sendall(bytes([letter]))
        answer = b""
        while part := slow.recv(4000):
            answer += part
    whole = time.monotonic() - began
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["seconds"] < whole / 2, (
        "it got the whole body at once"
    )
    for begun in (head, "GET / HTTP/1.1\r\nHost: x\r\nA: "):
        began = time.monotonic()
        with line(address, begun) as stops:
            try:
                while stops.recv(4000):
                    pass
            except ConnectionResetError:
                pass
        assert time.monotonic() - began < 10


def test_one_address_has_only_so_many_open_requests(address: str) -> None:
    wait_for(lambda: asked(f"{address}/x.js")[0] == 200)
    assert together(f"{address}/slow") == 20
    wait_for(lambda: asked(f"{address}/x.js")[0] == 200)


def together(url: str, addresses: Sequence[str] = ("",), many: int = 40) -> int:
    """How many of so many requests of each address at once are answered; the rest is refused as too many."""
    every = [address for address in addresses for _ in range(many)]
    with ThreadPoolExecutor(len(every)) as pool:
        codes = [*pool.map(lambda who: asked(url, X_Forwarded_For=who)[0], every)]
    assert set(codes) == {200, 429}
    return codes.count(200)


def test_sockets_of_charts_have_a_number_for_an_address_and_in_all(stated: str) -> None:
    charts = f"{stated}/normviz/numbers?slow"
    assert together(charts, ["192.0.2.60"]) == 10
    assert together(charts, ["192.0.2.61", "192.0.2.62"], 10) == 15
    assert together(f"{stated}/slow", ["192.0.2.63"]) == 20, "and with all else"


def test_a_shared_server_is_sent_no_file(address: str) -> None:
    for path in ("/_stcore/upload_file/page/file", "/maps/_stcore/upload_file/page/file"):
        assert asked(address + path, b"x")[0] == 403


def test_what_costs_most_has_a_rate(address: str) -> None:
    for path, burst in (("/normviz/preview.png", 60), ("/_stcore/health", 200), ("/maps", 200)):
        with ThreadPoolExecutor(12) as pool:
            codes = [*pool.map(lambda _, path=path: asked(address + path)[0], range(2 * burst))]
        assert set(codes) == {200, 429} and codes.count(200) > burst
        assert asked(f"{address}/x.js")[0] == 200  # the rest of the page goes on


def test_an_unfinished_crowd_leaves_room_for_others(address: str) -> None:
    """Sockets that ask for nothing are closed, and meanwhile no limit of requests counts them."""
    with ExitStack() as crowd:
        for _ in range(200):
            crowd.enter_context(line(address, "GET / HT"))
        assert asked(f"{address}/x.js")[0] == 200


def test_both_end_together(tmp_path: Path) -> None:
    for ending in ("stop", "nginx", "echo.py"):
        folder = tmp_path / ending
        folder.mkdir()
        (folder / "echo.py").write_text(ECHO)
        with proxied(folder, folder / "echo.py") as (_, process):
            below = psutil.Process(process.pid).children(recursive=True)
            assert any("echo.py" in " ".join(one.cmdline()) for one in below)
            if ending == "stop":
                process.send_signal(signal.SIGTERM)
            else:
                (one, *_) = [one for one in below if ending in " ".join(one.cmdline())]
                os.kill(one.pid, signal.SIGTERM)
            assert (process.wait(20) == 0) == (ending == "stop")
            wait_for(lambda left=below: not any(one.is_running() for one in left))


def test_nginx_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "nginx.conf", tmp_path)
    (tmp_path / "proxies.conf").write_text("")
    done = subprocess.run(
        ["/usr/sbin/nginx", "-t", "-p", str(tmp_path), "-e", "stderr", "-c", "nginx.conf"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "warn" not in done.stderr, done.stderr
