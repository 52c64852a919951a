"""The socket of the charts when somebody asks too much of it: what is kept, looked at and held open."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from backend_kit import wait_for
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect
from test_numbers_socket import hero

from normviz.player import Have

ASKED = {"runs": [10**12], "probe": "grad_block"}


def other(request: Request) -> PlainTextResponse:
    """A route that takes one of the threads that all routes share."""
    return PlainTextResponse("here")


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    from normviz.app.asgi.numbers_socket import numbers

    routes = [WebSocketRoute("/numbers", numbers), Route("/other", other)]
    with TestClient(Starlette(routes=routes)) as client:
        yield client


def snapshot() -> Any:
    from normviz.app.asgi.channel import Topic, read_snapshot

    return read_snapshot(Topic(runs=tuple(hero()), probe="grad_block"))


def closed(line: WebSocketTestSession) -> WebSocketDisconnect:
    with pytest.raises(WebSocketDisconnect) as end:
        line.receive_json()
    return end.value


def test_what_the_lanes_do_not_hold_counts_as_nothing(folder: Path) -> None:
    """Else each number that a script makes up is a text of its own, kept while anybody watches."""
    shot = snapshot()
    run = shot.lanes[0].recording
    n, m = len(run.losses), len(run.layers("grad_block").step)

    async def texts(*have: tuple[Have, ...]) -> set[str]:
        return {await shot.text(one) for one in have}

    told = asyncio.run(
        texts((), ((n + 1, m), (0, 0)), ((n, m + 1), (0, 0)), ((2**52, 1), (1, 1)), ((1, 1),))
    )
    assert len(told) == len(shot.texts) == 1


def test_a_moment_keeps_few_texts_and_those_asked_for_last(folder: Path) -> None:
    from normviz.app.asgi.channel import TEXTS

    shot = snapshot()

    async def ask() -> None:
        for i in range(4 * TEXTS):
            await shot.text(((i, 0), (0, 0)))
            await shot.text(())

    asyncio.run(ask())
    assert len(shot.texts) == TEXTS
    assert () in shot.texts and ((4 * TEXTS - 1, 0), (0, 0)) in shot.texts


def test_a_long_request_is_not_read(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from normviz.app.asgi import numbers_socket

    read: list[str] = []
    monkeypatch.setattr(numbers_socket.Request, "model_validate_json", read.append)
    with client.websocket_connect("/numbers") as line:
        line.send_text(" " * (numbers_socket.LONGEST + 1))
        assert closed(line).code == 1009
    assert not read


def test_the_longest_request_of_a_page_is_read(client: TestClient) -> None:
    many, run = list(range(2**53 - 5, 2**53)), 2**53 - 1
    asked = {"runs": [run] * 4, "repeats": [many] * 4, "have": [[run, run]] * 4}
    with client.websocket_connect("/numbers") as line:
        line.send_json({**asked, "probe": "grad_block", "dark": True, "view": "walk"})
        assert "status" in line.receive_json()


def test_requests_of_a_line_are_taken_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends thousands a second would have as many topics begun."""
    from normviz.app.asgi import numbers_socket

    monkeypatch.setattr(numbers_socket, "BETWEEN", 3600)
    monkeypatch.setattr(numbers_socket, "_serve", lambda *_: asyncio.sleep(0))
    taken = 0

    async def receive() -> dict[str, str]:
        nonlocal taken
        taken += 1
        await asyncio.sleep(0)
        return {"text": "{}"}

    async def some_turns() -> None:
        socket: Any = SimpleNamespace(receive=receive)
        answering = asyncio.create_task(numbers_socket._answer(socket))
        for _ in range(100):
            await asyncio.sleep(0)
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)

    asyncio.run(some_turns())
    assert taken == 1


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def reads(
    monkeypatch: pytest.MonkeyPatch, watchers: dict[tuple[str, str], int], seconds: float
) -> Counter[tuple[str, str]]:
    """How many reads each visitor gets whose topics all want to be read at every moment."""
    from normviz.app.asgi import rate_limit as module
    from normviz.app.asgi.channel import READS_A_SECOND

    clock, limit, got = Clock(), module.RateLimit(READS_A_SECOND), Counter[tuple[str, str]]()
    monkeypatch.setattr(module, "time", clock)
    while clock.now < 1000 + seconds:
        for who, topics in watchers.items():
            got[who] += sum(limit.take([module.Watcher(*who)]) == 0 for _ in range(topics))
        clock.now += 0.01
    return got


def test_many_topics_are_read_no_more_often_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    from normviz.app.asgi.channel import READS_A_SECOND

    one = ("here", "one")
    assert reads(monkeypatch, {one: 1}, 2)[one] >= 0.8 * 2 * READS_A_SECOND
    for many in ({one: 40}, {("here", f"{i}"): 2 for i in range(30)}):
        assert reads(monkeypatch, many, 2).total() <= 2 * READS_A_SECOND + len(many)


def test_many_topics_of_a_visitor_slow_down_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, same_place = ("here", "honest"), ("there", "neighbour")
    crowd = {("there", f"fresh cookie {i}"): 5 for i in range(20)}
    got = reads(monkeypatch, {honest: 1, same_place: 1} | crowd, 10)
    assert got[honest] >= 10 * 10, "as often as live charts are read at most"
    assert got[same_place] >= 0.8 * got.total() / 2 / 21, "a share of the address's share"


def test_a_topic_is_read_for_the_watcher_who_waits_least(monkeypatch: pytest.MonkeyPatch) -> None:
    from normviz.app.asgi import rate_limit as module

    clock, limit = Clock(), module.RateLimit(40)
    monkeypatch.setattr(module, "time", clock)
    busy, idle = module.Watcher("a", "busy"), module.Watcher("b", "idle")
    assert limit.take([busy]) == 0 < limit.take([busy])
    assert limit.take([busy, idle]) == 0
    clock.now += 60
    assert limit.take([busy]) == 0 and len(limit._next) == 1, "shares of visitors who left end"


def test_a_visitor_may_be_ahead_by_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    from normviz.app.asgi import rate_limit as module

    clock, limit = Clock(), module.RateLimit(0.5, burst=8.0)
    monkeypatch.setattr(module, "time", clock)
    one, other = module.Watcher("a"), module.Watcher("b")
    assert [limit.take([one]) for _ in range(6)] == [0, 0, 0, 0, 0, 2]
    assert limit.take([other]) == 0
    clock.now += 2
    assert limit.take([one]) == 0 < limit.take([one])


def test_a_topic_without_a_stored_run_is_answered_once_and_closed(client: TestClient) -> None:
    from normviz.app.asgi import channel

    with client.websocket_connect("/numbers") as line:
        for probe in ("grad_block", "grad_w2"):
            line.send_json({**ASKED, "probe": probe})
            assert line.receive_json()["status"]
            wait_for(lambda: not channel._open, "that the topic is closed")
        line.send_json({"runs": hero(), "probe": "grad_block"})  # the connection still serves
        assert line.receive_json()["lanes"]
        assert len(channel._open) == 1


def test_silent_sockets_of_other_runs_slow_no_charts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.app.asgi import channel

    monkeypatch.setattr(channel, "read_snapshot", lambda topic: channel.Snapshot(topic, {}))

    async def watched() -> int:
        with ExitStack() as stack:
            for run in range(140):
                stack.enter_context(
                    channel.watching(channel.Topic(runs=(run,), probe="grad_block"))
                )
            own = channel.Topic(runs=(10**6,), probe="grad_block")
            return stack.enter_context(channel.watching(own)).watching

    assert asyncio.run(watched()) == 1


def test_other_routes_keep_their_threads(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.app.asgi.channel import Snapshot, Topic

    may, looking, most = threading.Event(), [0], [0]

    def read_snapshot(topic: Topic) -> Snapshot:
        looking[0] += 1
        most[0] = max(most[0], looking[0])
        may.wait(60)
        looking[0] -= 1
        return Snapshot(topic, {"words": "", "signature": ""})

    monkeypatch.setattr("normviz.app.asgi.channel.read_snapshot", read_snapshot)
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        lines = [stack.enter_context(client.websocket_connect("/numbers")) for _ in range(60)]
        stack.callback(may.set)
        for i, line in enumerate(lines):
            line.send_json({**ASKED, "runs": [10**12 + i]})
        wait_for(lambda: looking[0] >= 3, "that looks begin")
        answer = pool.submit(client.get, "/other")
        wait_for(answer.done, "an answer beside the looks", seconds=20)
        assert answer.result().text == "here"
        may.set()
        assert all("status" in line.receive_json() for line in lines)
    assert most[0] <= 3
