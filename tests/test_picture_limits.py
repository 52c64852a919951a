"""Who may have a picture drawn, and how many at once: each takes a core for a moment."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from backend_kit import wait_for
from hosted_kit import cookies
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

ADDRESS = "/picture?runs=1&chart=loss&kind=png&probe=grad_block"


def app() -> Starlette:
    from normviz.app.asgi.pictures import pictures

    return Starlette(routes=[Route("/picture", pictures)])


@pytest.fixture(autouse=True)
def _a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A semaphore belongs to the event loop in which somebody waited for it."""
    from normviz.app.asgi import pictures

    monkeypatch.setattr(pictures, "ONE", asyncio.Semaphore(1))


def test_more_than_may_wait_are_sent_away_and_the_others_are_drawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.app.asgi import pictures

    may, drawing, most = threading.Event(), [0], [0]

    def draw(asked: object) -> bytes:
        drawing[0] += 1
        most[0] = max(most[0], drawing[0])
        may.wait(60)
        drawing[0] -= 1
        return b"a picture"

    monkeypatch.setattr(pictures, "_draw", draw)
    n = pictures.MAX_WAITING + 6
    with TestClient(app()) as client, ThreadPoolExecutor(n) as pool:
        asked = [pool.submit(client.get, ADDRESS, headers=cookies(f"{i}")) for i in range(n)]
        wait_for(lambda: sum(one.done() for one in asked) == 5, "that five are sent away")
        away = [one.result() for one in asked if one.done()]
        may.set()
        answers = [one.result() for one in asked]
    assert {answer.status_code for answer in away} == {503}
    assert away[0].headers["Retry-After"] == "5" and "try again in a few" in away[0].text
    assert [a.status_code for a in answers].count(200) == pictures.MAX_WAITING + 1
    assert most[0] == 1
    with TestClient(app()) as client:
        assert client.get(ADDRESS).status_code == 200  # and then there is room again


@pytest.mark.parametrize("names", [("a", "b"), (None, "b")])
def test_one_picture_of_a_visitor_waits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str | None, str]
) -> None:
    """While another one is drawn; who sends no cookie is one visitor with all who send none."""
    from normviz.app.asgi import pictures

    may, began = threading.Event(), threading.Event()

    def draw(asked: object) -> bytes:
        began.set()
        may.wait(60)
        return b"a picture"

    monkeypatch.setattr(pictures, "_draw", draw)
    one, other = (cookies(name) if name else {} for name in names)
    with TestClient(app()) as client, ThreadPoolExecutor(9) as pool:
        drawn = pool.submit(client.get, ADDRESS, headers=one)
        wait_for(began.is_set, "that a picture is begun")
        waiting = pool.submit(client.get, ADDRESS, headers=one)
        wait_for(lambda: pictures._waiting, "that the next one waits")
        away = client.get(ADDRESS, headers=one)
        theirs = pool.submit(client.get, ADDRESS, headers=other)
        wait_for(lambda: len(pictures._waiting) == 2, "that another visitor's waits")
        may.set()
        answers = [asked.result().status_code for asked in (drawn, waiting, theirs)]
    assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
    assert "A picture that you asked for waits already" in away.text
    assert answers == [200, 200, 200] and not pictures._waiting


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://["},
                {"Sec-Fetch-Site": "cross-site"}]
)  # fmt: skip
def test_pages_of_other_sites_get_none(folder: Path, headers: dict[str, str]) -> None:
    answer = TestClient(app()).get(ADDRESS, headers=headers)
    assert answer.status_code == 403 and "own pages alone" in answer.text


def test_the_servers_own_page_gets_one(folder: Path) -> None:
    headers = {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    answer = TestClient(app()).get(ADDRESS, headers=headers)
    assert answer.status_code in (200, 400)  # 400: there is no such run here
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (f"{ADDRESS}&kind=svg", "kind is given twice, allowed is once"),
        (
            ADDRESS.replace("runs=1", "runs=" + "0" * 1001 + "1"),
            "1002 characters are given, allowed",
        ),
        (ADDRESS.replace("runs=1", "runs=<script>"), "runs"),
        (ADDRESS.replace("runs=1", "runs=1%00"), "runs"),
        (ADDRESS.replace("grad_block", "../../etc/passwd"), "probe"),
        (f"{ADDRESS}&cursor=1e400", "cursor"),
        (f"{ADDRESS}&repeats={'1,' * 9}", "repeats"),
    ],
)
def test_an_address_is_taken_as_it_is_or_told(folder: Path, query: str, sentence: str) -> None:
    answer = TestClient(app()).get(query)
    assert answer.status_code == 400 and sentence in answer.text
    assert answer.headers["Content-Type"].startswith("text/plain")
