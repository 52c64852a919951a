"""Many browsers on one run: it is read and encoded once for all of them, and nobody waits for another."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backend_kit import SHORT

from normviz import RunConfig, train
from normviz.runs.store import Store
from normviz.training.events import Started, Step

Counts = dict[str, int]


@pytest.fixture
def counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """How often a run was read and a text was written."""
    from normviz.app.asgi import channel

    seen = {"looks": 0, "messages": 0}
    look, message = channel.read_snapshot, channel.message

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*words: Any, **named: Any) -> Any:
            seen[name] += 1
            return function(*words, **named)

        return wrapped

    monkeypatch.setattr("normviz.app.asgi.channel.read_snapshot", counted("looks", look))
    monkeypatch.setattr("normviz.app.asgi.channel.message", counted("messages", message))
    monkeypatch.setattr("normviz.app.asgi.channel.TICK_SECONDS", 0.02)
    monkeypatch.setattr("normviz.app.asgi.channel.SECONDS_EACH", 0.0)
    yield seen
    assert not channel._open, "a channel stays open after the last browser left"


class Line:
    """A browser's end of the socket: what it was sent, and `slow` while it takes nothing."""

    def __init__(self) -> None:
        self.texts: list[dict[str, Any]] = []
        self.free = asyncio.Event()
        self.free.set()

    async def send_text(self, text: str) -> None:
        await self.free.wait()
        self.texts.append(json.loads(text))

    @property
    def numbers(self) -> list[int]:
        """Where each message begins and how many losses are here after the last one."""
        return [text["lanes"][0]["from"][0] for text in self.texts if "lanes" in text]


def training() -> tuple[Store, int, list[Step]]:
    """A run that has begun, and the steps that it will take."""
    from normviz.app.session.backend import shared

    store = shared().store
    run = store.enqueue(SHORT)
    started, *rest = train(SHORT)
    assert isinstance(started, Started)
    store.started(run, started, 1, paused=False)
    return store, run, [event for event in rest if isinstance(event, Step)]


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0.005)


async def watched(run: int, n: int, story: Callable[[list[Line]], Awaitable[None]]) -> list[Line]:
    """`n` browsers that watch a run while the story goes on."""
    from normviz.app.asgi.numbers_socket import Request, _send
    from normviz.app.asgi.rate_limit import ANYBODY

    lines = [Line() for _ in range(n)]
    asked = Request(runs=[run], probe="grad_block")
    tasks = [asyncio.create_task(_send(line, asked, ANYBODY)) for line in lines]
    try:
        await until(lambda: all(line.texts for line in lines))
        await story(lines)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return lines


def test_a_run_is_read_and_encoded_once_for_all(counts: Counts) -> None:
    store, run, steps = training()

    async def story(lines: list[Line]) -> None:
        first, began = dict(counts), time.monotonic()
        for k in range(4):
            store.append(run, steps[k : k + 1])
            await until(lambda k=k: all(len(line.texts) == k + 2 for line in lines))
        assert counts["messages"] - first["messages"] == 4
        await asyncio.sleep(0.2)
        most = 4 + (time.monotonic() - began) / 0.02 + 10
        assert counts["looks"] - first["looks"] < most, "one reader, not one each"

    lines = asyncio.run(watched(run, 30, story))
    assert all(line.texts == lines[0].texts for line in lines)
    assert lines[0].numbers == [0, 0, 1, 2, 3]


def test_a_slow_browser_keeps_nobody_waiting_and_misses_no_number(counts: Counts) -> None:
    store, run, steps = training()

    async def story(lines: list[Line]) -> None:
        slow, quick = lines
        slow.free.clear()
        for k in range(4):
            store.append(run, steps[k : k + 1])
            await until(lambda k=k: len(quick.texts) == k + 2)
        slow.free.set()
        await until(lambda: slow.numbers[-1] >= 1)

    slow, quick = asyncio.run(watched(run, 2, story))
    assert len(slow.texts) < len(quick.texts)
    assert slow.texts[-1]["status"] == quick.texts[-1]["status"]


def test_who_comes_later_gets_all_and_then_the_same_as_others(counts: Counts) -> None:
    from normviz.app.asgi.numbers_socket import Request, _send
    from normviz.app.asgi.rate_limit import ANYBODY

    store, run, steps = training()
    late = Line()

    async def story(lines: list[Line]) -> None:
        store.append(run, steps[:5])
        await until(lambda: len(lines[0].texts) == 2)
        asked = Request(runs=[run], probe="grad_block")
        coming = asyncio.create_task(_send(late, asked, ANYBODY))
        await until(lambda: bool(late.texts))
        before = counts["messages"]
        store.append(run, steps[5:6])
        await until(lambda: len(late.texts) == 2 and len(lines[0].texts) == 3)
        assert counts["messages"] == before + 1
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)

    (line,) = asyncio.run(watched(run, 1, story))
    assert late.numbers == [0, 5]
    assert late.texts[-1] == line.texts[-1]


def test_very_many_are_told_less_often_but_never_less_than_twice_a_second() -> None:
    """Those who watch the same runs: many sockets of others change nothing."""
    from normviz.app.asgi import channel

    ticks = {n: channel.pause(is_live=True, watching=n) for n in (1, 20, 100, 10_000)}
    assert ticks[1] == ticks[20] == channel.TICK_SECONDS
    assert 1 / 4 < ticks[100] < 1 / 2 and ticks[100] < ticks[10_000] < 1 / 2


def test_a_class_does_not_ask_for_the_page_in_the_same_moment(counts: Counts) -> None:
    """A few do, so that a visitor alone sees at once what came out."""
    for n, spread in ((1, None), (30, 1.2)):
        store, run, steps = training()

        async def story(
            lines: list[Line], store: Store = store, run: int = run, steps: list[Step] = steps
        ) -> None:
            store.append(run, steps[:1])
            await until(lambda: all(len(line.texts) == 2 for line in lines))
            store.end(run, "stopped")
            await until(lambda: all(len(line.texts) == 3 for line in lines))

        lines = asyncio.run(watched(run, n, story))
        told = [line.texts[-1]["status"].get("spread") for line in lines]
        assert told == [pytest.approx(spread)] * n


def test_a_duel_that_rests_is_sent_once(counts: Counts) -> None:
    from normviz.app.session.backend import shared

    run = shared().store.latest(RunConfig().key)
    assert run is not None

    async def story(lines: list[Line]) -> None:
        await asyncio.sleep(0.1)

    (line,) = asyncio.run(watched(run.id, 1, story))
    assert len(line.texts) == 1
