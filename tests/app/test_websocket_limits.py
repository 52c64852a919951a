"""What a WebSocket may hold and cost before a message is whole, and what a page may send."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from unittest.mock import Mock

import pytest
import uvicorn
from backend_kit import wait_for
from browser_kit import free_port
from normviz.app.asgi import connection_limit, left_sessions, log_limit, tuning, websocket_limits
from normviz.app.asgi.rate_limit import RateLimit, Watcher
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from normviz.home import shipped

pytestmark = pytest.mark.slow

HANDSHAKE = (
    "GET /normviz/numbers HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "X-Forwarded-For: {address}\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
MASK = b"\0\0\0\0"
SERVER = """
import sys, uvicorn
from normviz.app.asgi import websocket_limits
from normviz.app.asgi.connection_limit import Connections
for limit in sys.argv[2:]:
    name, _, value = limit.partition("=")
    setattr(websocket_limits, name, float(value))

async def app(scope, receive, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
    elif scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})

websocket_limits.install()
uvicorn.run(Connections(app), host="127.0.0.1", port=int(sys.argv[1]), ws="websockets-sansio")
"""
LIMITS = (
    "SWEEP_SECONDS=0.1", "EACH=1000000", "MESSAGE=500000", "PENALTY_SECONDS=1", "PENALTY_EACH=100000",
    "BUSY_SECONDS=0.2",
)  # fmt: skip


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server with small limits."""
    found = free_port()
    path = f"import sys; sys.path.insert(0, {str(shipped('app'))!r}); import search_path\n"
    process = subprocess.Popen([sys.executable, "-c", path + SERVER, str(found), *LIMITS])
    try:
        wait_for(lambda: answers(found), "the server")
        yield found
    finally:
        process.terminate()
        process.wait(20)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def answers(port: int) -> bool:
    try:
        with connected(port) as one:
            one.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            return b"here" in b"".join(iter(lambda: one.recv(4096), b""))
    except OSError:
        return False


def upgraded(port: int, address: str) -> socket.socket:
    one = connected(port)
    one.sendall(HANDSHAKE.format(host=f"127.0.0.1:{port}", address=address).encode())
    assert b" 101 " in one.recv(4096)
    return one


def is_open(one: socket.socket) -> bool:
    """Whether a connection that has nothing to read is not closed."""
    return not readable([one], 0)


def readable(connections: list[socket.socket], seconds: float) -> bool:
    """Whether one of them can be read or is closed, in that time."""
    waiting = select.poll()  # select.select takes no file number above 1023
    for one in connections:
        waiting.register(one, select.POLLIN)
    return bool(waiting.poll(1000 * seconds))


def frame(opcode: int, size: int, body: bytes) -> bytes:
    return bytes([opcode, 0xFF]) + struct.pack("!Q", size) + MASK + body


def test_a_message_of_empty_frames_has_an_end(port: int) -> None:
    """Each frame takes memory until the message is whole, though it has no content."""
    with upgraded(port, "198.51.100.8") as one, suppress(ConnectionError):
        one.sendall(b"\x02\x81" + MASK + b"a")
        for _ in range(100):
            one.sendall((b"\x00\x80" + MASK) * 100)
            if readable([one], 0.02):
                break
        else:
            raise AssertionError("it was not closed")


@pytest.mark.parametrize(
    "frames", [b"\x89\x80" + MASK, b"\x02\x81" + MASK + b"a" + (b"\x00\x81" + MASK + b"a") * 5000],
    ids=["pings", "fragments"],
)  # fmt: skip
def test_frames_may_take_so_much_of_the_event_loop(port: int, frames: bytes) -> None:
    """The socket that floods is closed, one of another address stays."""
    address = f"198.51.100.{len(frames) % 200 + 20}"
    with upgraded(port, "198.51.100.5") as other, upgraded(port, address) as one:
        other.sendall(frame(0x82, 1000, b"a"))
        with suppress(ConnectionError):
            for _ in range(400):
                one.sendall(frames * max(1, 16_000 // len(frames)))
                if readable([one], 0) and len(one.recv(65_536)) == 0:
                    break
            else:
                raise AssertionError("it was not closed")
        assert is_open(other), "its time was not over yet"


def test_a_network_address_holds_so_much_and_others_have_their_own(port: int) -> None:
    with upgraded(port, "198.51.100.3") as honest:
        honest.sendall(frame(0x82, 1000, b"a" * 500))
        many = [upgraded(port, "198.51.100.4") for _ in range(4)]
        for one in many:
            try:
                one.sendall(frame(0x82, 450_000, b"a" * 400_000))
            except ConnectionError:
                continue
        assert readable(many, 20), "one is closed"
        assert is_open(honest), "its time was not over yet"
        with connected(port) as again:  # and for a moment it opens no other
            again.sendall(HANDSHAKE.format(host="here", address="198.51.100.4").encode())
            assert b" 403 " in again.recv(4096)
        honest.sendall(b"a" * 500)
        honest.sendall(b"\x89\x80" + MASK)
        assert honest.recv(100)[:1] == b"\x8a"
        for one in many:
            one.close()


async def stays(scope: Scope, receive: Receive, send: Send) -> None:
    """A page that is open until its browser leaves."""
    if scope["type"] == "http":
        await PlainTextResponse("here")(scope, receive, send)
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": "got it"})


def page(app: connection_limit.Connections, address: str = "198.51.100.1") -> TestClient:
    return TestClient(app, client=(address, 1))


def test_pages_of_an_address_and_in_all_have_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "EACH", 2)
    monkeypatch.setattr(connection_limit, "IN_ALL", 3)
    app = connection_limit.Connections(stays)
    path = "/_stcore/stream"
    with page(app).websocket_connect(path), page(app).websocket_connect(path):
        with (
            pytest.raises(WebSocketDisconnect),
            page(app).websocket_connect(path),
        ):
            pass
        said = page(app).get("/maps")
        assert said.status_code == 503 and "2 pages are open from your network" in said.text
        with page(app, "198.51.100.2").websocket_connect(path):
            assert "3 pages are open in all" in page(app, "198.51.100.3").get("/").text
        assert page(app).get("/normviz/player.js").text == "here", "the proxy counts requests"
    assert not app.open


def test_a_message_names_so_many_values() -> None:
    """What a page sends passes; the connection of what no page sends is closed."""
    app, path, asked = connection_limit.Connections(stays), "/_stcore/stream", BackMsg()
    for i in range(connection_limit.WIDGETS):
        asked.rerun_script.widget_states.widgets.add(id=f"w{i}", trigger_value=True)
    with page(app).websocket_connect(path) as one:
        one.send_bytes(asked.SerializeToString())
        assert one.receive_text() == "got it"
        one.send_bytes(b"\xff" * 5000)  # Streamlit refuses it
        assert one.receive_text() == "got it"
        asked.rerun_script.widget_states.widgets.add(id="w")
        one.send_bytes(asked.SerializeToString())
        with pytest.raises(WebSocketDisconnect) as end:
            one.receive_text()
        assert end.value.code == 1009 and "500 values" in end.value.reason


def test_a_message_to_a_shared_server_is_small() -> None:
    path, large = "/_stcore/stream", b"\xff" * (connection_limit.SHARED_MESSAGE + 1)
    with page(connection_limit.Connections(stays)).websocket_connect(path) as one:
        one.send_bytes(large)
        assert one.receive_text() == "got it"
    shared = connection_limit.Connections(stays, connection_limit.SHARED_MESSAGE)
    with page(shared).websocket_connect(path) as one:
        one.send_bytes(large[1:])
        assert one.receive_text() == "got it"
        one.send_bytes(large)
        with pytest.raises(WebSocketDisconnect) as end:
            one.receive_text()
        assert end.value.code == 1009


def test_pages_that_connect_and_files_that_are_made_at_a_click_wait_for_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited, came = list[str](), list[str]()

    class Share(RateLimit):
        def __init__(self, into: list[str]) -> None:
            super().__init__(1)
            self.into = into

        async def wait(self, watchers: list[Watcher]) -> None:
            self.into.extend(who.address for who in watchers)

    monkeypatch.setattr(connection_limit, "DOWNLOADS", Share(waited))
    monkeypatch.setattr(connection_limit, "OPENINGS", Share(came))
    asked = BackMsg()
    asked.backend_operation_request.deferred_file.file_id = "replay"
    with page(connection_limit.Connections(stays)).websocket_connect("/_stcore/stream") as one:
        for message in (BackMsg(stop_script=True), asked):
            one.send_bytes(message.SerializeToString())
            assert one.receive_text() == "got it"
    assert came == waited == ["198.51.100.1"]


class Server:
    """Streamlit's runtime, with the sessions that it lists: of open pages, and of some that were left."""

    def __init__(self) -> None:
        self.listed: list[Session] = []
        self._session_mgr = self

    def list_sessions(self) -> list[object]:
        from types import SimpleNamespace

        return [SimpleNamespace(session=one) for one in self.listed]


class Session:
    def __init__(self, name: str) -> None:
        self.id, self.closed = name, False

    def shutdown(self) -> None:
        self.closed = True


def test_sessions_that_streamlit_has_forgotten_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    monkeypatch.setattr(left_sessions.runtime, "get_instance", lambda: server)
    server.listed = there, forgotten = [Session(name) for name in ("there", "forgotten")]
    sessions = left_sessions.Sessions()
    assert sessions.sweep() == 0
    server.listed = [there]
    assert sessions.sweep() == 1 and forgotten.closed and not there.closed
    assert sessions.sweep() == 0


def test_the_same_line_is_logged_only_so_often(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    limit, log = log_limit.LogLimit(), logging.getLogger("flooded")
    caplog.handler.addFilter(limit)
    try:
        for i in range(1000):
            log.warning("refused %s", i)
        log.warning("another line")
    finally:
        caplog.handler.removeFilter(limit)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == log_limit.LINES + 1 and lines[-1] == "another line"
    assert "further lines like this one are left out" in lines[-2]


def test_what_is_sent_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a listening socket that does not name its protocol, as Streamlit's."""
    monkeypatch.setattr(AutoHTTPProtocol, "connection_made", AutoHTTPProtocol.connection_made)
    tuning.send_at_once()

    async def no_delay() -> int:
        state = uvicorn.Server(config := uvicorn.Config(PlainTextResponse("here"))).server_state
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: AutoHTTPProtocol(config, state, {}), sock=socket.create_server(("127.0.0.1", 0))
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await reader.readuntil(b"here")
            accepted = next(iter(state.connections)).transport.get_extra_info("socket")
            writer.close()
            return accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert asyncio.run(no_delay())


def test_a_loop_whose_reads_have_no_limit_serves_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As uvloop's, which Streamlit takes where it is installed."""
    monkeypatch.setattr(websocket_limits, "_open", {})
    monkeypatch.setattr(websocket_limits, "_sweeping", Mock(done=lambda: False))
    protocol = Mock(transport=Mock(spec_set=asyncio.Transport))
    websocket_limits._made(protocol)
    assert protocol in websocket_limits._open


def test_the_limit_of_open_files_is_raised_and_said() -> None:
    resource = pytest.importorskip("resource")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < 2048:
        pytest.skip("this machine allows no more")
    lines = (
        "import resource, sys",
        f"sys.path.insert(0, {str(shipped('app'))!r})",
        "import search_path",
        "_, most = resource.getrlimit(resource.RLIMIT_NOFILE)",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))",
        "from normviz.app.asgi.tuning import raise_file_limit",
        "raise_file_limit()",
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) >= 2048
    assert "limit of open files is" in done.stderr and "raised from 256" in done.stderr


THREADS = """
import ctypes, os, re, sys, tempfile, threading
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "server":
    import server
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
met = threading.Barrier(12)
def work():
    met.wait()
    kept = [libc.malloc(2000) for _ in range(1000)]
    met.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    out = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, out)
    libc.fclose(out)
    print(len(re.findall("<heap ", open(file.name).read())), sys.getswitchinterval())
"""


def process(how: str) -> tuple[int, float]:
    """Arenas and switch interval of a process with twelve threads that took memory at once."""
    command = [sys.executable, "-c", THREADS, str(shipped("app")), how]
    arenas, seconds = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.split()
    return int(arenas), float(seconds)


@pytest.mark.skipif(sys.platform != "linux", reason="of the GNU C library alone")
def test_the_servers_threads_share_two_arenas_and_take_turns_sooner() -> None:
    plain, tuned = process("plain"), process("server")
    assert plain[0] > 2 and tuned[0] <= 2
    assert tuned[1] < plain[1] / 10


def test_a_penalty_ends_when_no_other_socket_is_open(port: int) -> None:
    address = "198.51.100.77"
    with upgraded(port, address) as one, suppress(ConnectionError):
        while True:  # pings, until it took too much of the event loop
            one.sendall((b"\x89\x80" + MASK) * 16_000)
            if readable([one], 0) and len(one.recv(65_536)) == 0:
                break
    time.sleep(1.3)  # the penalty takes 1 s
    with upgraded(port, address) as again:
        assert is_open(again)
