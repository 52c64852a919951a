"""The socket of the charts: numbers of stored runs, and nothing to strangers or for nonsense."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest
from backend_kit import SHORT
from crossing_kit import case
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from normviz import RunConfig, train
from normviz.runs.frames import Frames
from normviz.runs.store import Store
from normviz.training.events import Started, Step


@pytest.fixture
def client(folder: Path) -> TestClient:
    from normviz.app.asgi.numbers_socket import numbers

    return TestClient(Starlette(routes=[WebSocketRoute("/numbers", numbers)]))


def hero() -> list[int]:
    from normviz.app.session.backend import shared

    store = shared().store
    found = [store.latest(RunConfig(scheme=scheme).key) for scheme in ("pre", "post")]
    return [run.id for run in found if run]


def test_a_stored_duel_arrives_whole(client: TestClient) -> None:
    """A first look has everything; a lane without a run keeps its letter, an unknown run is no error."""
    runs = hero()
    with client.websocket_connect("/numbers") as line:
        for probe in ("grad_block", "update_ratio", "token_cosine"):
            line.send_json({"runs": runs, "probe": probe})
            out = line.receive_json()
            assert out["status"]["words"] == "" and not out["live"]
            assert [one["name"] for one in out["about"]] == ["A Pre-LN", "B Post-LN"]
            assert out["probe"] == probe and len(out["charts"]) == 4
            assert "Post-LN 3.3" in out["findings"]["loss"]
        line.send_json({"runs": [None, runs[1]], "probe": "grad_block"})
        assert line.receive_json()["about"][0]["name"] == "B Post-LN"
        line.send_json({"runs": [10**12], "probe": "grad_block"})
        assert line.receive_json()["status"]["signature"] == ""


def test_after_a_broken_line_only_the_rest_is_sent(client: TestClient) -> None:
    with client.websocket_connect("/numbers") as line:
        line.send_json({"runs": hero(), "probe": "grad_block", "have": [[200, 80], [150, 10]]})
        out = line.receive_json()
    assert [lane["from"] for lane in out["lanes"]] == [[200, 80], [150, 10]]
    assert out["lanes"][0]["loss"] == ""


NONSENSE = (
    "", "x", "[]", "{}", '{"runs": [], "probe": "grad_block"}', '{"runs": [1], "probe": "<b>"}',
    '{"runs": [1,1,1,1,1], "probe": "grad_block"}', '{"runs": ["a"], "probe": "grad_block"}',
    '{"runs": [1], "probe": "grad_block", "have": [[-1, 0]]}', "[" * 10_000,
    '{"runs": [1%s], "probe": "grad_block"}' % ("0" * 30),
    '{"runs": [1], "repeats": [[1%s]], "probe": "grad_block"}' % ("0" * 30),
)  # fmt: skip


def test_nonsense_closes_the_line(client: TestClient) -> None:
    for text in NONSENSE:
        with case(text[:60]), client.websocket_connect("/numbers") as line:
            line.send_text(text)
            with pytest.raises(WebSocketDisconnect):
                line.receive_json()


def test_pages_of_other_sites_are_turned_away(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Also those whose origin is no address."""
    for origin in (
        "https://evil.example",
        "null",
        "http://[",
        "http://[::1",
        "//testserver",
        "testserver",
    ):
        with (
            case(origin),
            pytest.raises(WebSocketDisconnect) as end,
            client.websocket_connect("/numbers", headers={"origin": origin}),
        ):
            pass
        assert end.value.code == 1008 and not caplog.records


def test_who_the_settings_let_in_may_come(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that puts another name before the server says so to Streamlit, for its own socket."""
    options = {"server.enableCORS": True, "server.corsAllowedOrigins": ["https://a.example"]}
    monkeypatch.setattr("normviz.app.asgi.numbers_socket.st.get_option", options.__getitem__)
    for origin in ("https://a.example", "https://b.example"):
        options["server.enableCORS"] = origin.startswith("https://a")
        with client.websocket_connect("/numbers", headers={"origin": origin}) as line:
            line.send_json({"runs": hero(), "probe": "grad_block"})
            assert "charts" in line.receive_json()


def test_bytes_end_the_line_and_an_error_closes_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser whose line is closed tries again; one whose line is silent would wait for ever."""
    with client.websocket_connect("/numbers") as line:
        line.send_bytes(b"x")
    monkeypatch.setattr("normviz.app.asgi.channel.read_snapshot", lambda *_: 1 / 0)
    with client.websocket_connect("/numbers") as line:
        line.send_json({"runs": [1], "probe": "grad_block"})
        with pytest.raises(WebSocketDisconnect) as closed:
            line.receive_json()
    assert closed.value.code == 1011


def test_progress_counts_no_steps_that_will_not_come(client: TestClient) -> None:
    from normviz.app.session.backend import shared

    store = shared().store
    open_run = store.enqueue(RunConfig(depth=3, steps=50))
    ended = store.enqueue(RunConfig(depth=4, steps=70))
    store.end(ended, "stopped")
    with client.websocket_connect("/numbers") as line:
        line.send_json({"runs": [open_run, ended], "probe": "grad_block"})
        status = line.receive_json()["status"]
    assert (status["done"], status["total"]) == (0, 50)


def test_progress_is_that_of_the_lane_that_is_behind(folder: Path) -> None:
    """Steps are numbered as in the charts. Where runs have different numbers of steps, all are counted."""
    from normviz.app.session.progress import status

    store = Store(folder)
    frames = Frames(store)

    def begun(done: int, steps: int = 20) -> int:
        config = SHORT.replace(steps=steps, init_seed=done)
        run, (start, *events) = store.enqueue(config), islice(train(config), done + 1)
        assert isinstance(start, Started)
        store.started(run, start, os.getpid(), paused=False)
        store.append(run, [event for event in events if isinstance(event, Step)])
        return run

    def said(*runs: int) -> tuple[str, int, int]:
        found = status(frames, [run for one in runs if (run := store.run(one))])
        return found["words"], found["done"], found["total"]

    a, b, other = begun(3), begun(7), begun(2, steps=30)
    assert said(a, b) == ("Step 2 of 20", 3, 20)
    assert said(a, b, other) == ("12 of 70 steps in all runs", 12, 70)
    store.set_status(a, "paused")
    assert said(a) == ("Paused at step 2 of 20", 3, 20)
    store.end(a, "stopped")
    assert said(a, b) == ("Step 6 of 20", 7, 20)
