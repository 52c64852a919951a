"""Pages that many ask for at once are drawn one after another; who has just come does not wait."""

from __future__ import annotations

import threading
import time

import pytest
from backend_kit import wait_for
from normviz.app.session import render_lock


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a page here takes long only where a test says so."""
    monkeypatch.setattr(render_lock, "LONGEST_SECONDS", 60.0)


class Pages:
    """Pages that are drawn until they are let go; `most` were drawn at once."""

    def __init__(self) -> None:
        self.drawing, self.most, self.done = 0, 0, 0
        self.free = threading.Event()
        self._lock = threading.Lock()
        self._threads = list[threading.Thread]()

    def ask(self, many: int = 1) -> None:
        threads = [threading.Thread(target=self._draw) for _ in range(many)]
        self._threads += threads
        for thread in threads:
            thread.start()

    def _draw(self) -> None:
        with render_lock.held(is_new=False):
            with self._lock:
                self.drawing += 1
                self.most = max(self.most, self.drawing)
            self.free.wait(60)
            with self._lock:
                self.drawing -= 1
                self.done += 1

    def end(self) -> None:
        self.free.set()
        for thread in self._threads:
            thread.join(60)


def test_one_is_drawn_at_a_time_and_who_comes_goes_first() -> None:
    pages = Pages()
    pages.ask(20)
    wait_for(lambda: pages.drawing == 1, "the first one")
    with render_lock.held(is_new=True):  # returns at once although the turn is taken
        assert (pages.drawing, pages.done) == (1, 0)
    pages.end()
    assert (pages.most, pages.done) == (1, 20)


def test_a_page_that_takes_long_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = Pages(), Pages()
    monkeypatch.setattr(render_lock, "LONGEST_SECONDS", 0.2)
    slow.ask()
    wait_for(lambda: slow.drawing == 1, "the slow one")
    monkeypatch.setattr(render_lock, "LONGEST_SECONDS", 60.0)
    quick.ask()
    wait_for(lambda: quick.drawing == 1, "the next one, beside it")
    slow.end()  # its turn was over: it does not end the other's
    quick.ask()
    time.sleep(0.2)  # in which it could take a turn that is not over
    assert quick.drawing == 1
    quick.end()
    assert quick.done == 2 and quick.most == 1


def test_a_page_that_fails_gives_its_turn_back() -> None:
    for _ in range(4):
        with pytest.raises(ZeroDivisionError), render_lock.held(is_new=False):
            _ = 1 / 0
    began = time.monotonic()
    with render_lock.held(is_new=False):
        assert time.monotonic() - began < 30


def order(*waiting: tuple[str, str]) -> list[tuple[str, str]]:
    """In which order pages render, each of an address and a visitor, that came while another rendered."""
    drawn, threads = list[tuple[str, str]](), list[threading.Thread]()

    def draw(address: str, visitor: str) -> None:
        with render_lock.held(False, visitor, address):
            drawn.append((address, visitor))

    def tickets() -> int:
        return sum(len(some) for one in render_lock._waiting.values() for some in one.values())

    with render_lock.held(is_new=False):
        for n, one in enumerate(waiting):
            threads.append(threading.Thread(target=draw, args=one))
            threads[-1].start()
            wait_for(lambda n=n: tickets() == n + 1, "that it waits")
    for thread in threads:
        thread.join(60)
    return drawn


def test_the_first_page_that_asks_is_the_first_that_renders() -> None:
    many = [("address", f"visitor {i}") for i in range(30)]
    assert order(*many) == many


def test_many_pages_of_a_visitor_have_one_place() -> None:
    many, other = [("one", "a")] * 20, ("one", "b")
    assert order(*many, other)[:2] == [many[0], other]


def test_many_visitors_of_an_address_have_one_place() -> None:
    fresh, other = [("one", f"cookie {i}") for i in range(20)], ("other", "b")
    assert order(*fresh, other)[:2] == [fresh[0], other]


def test_an_impatient_crowd_does_not_keep_a_click_waiting() -> None:
    """Its sessions ask again as soon as they are served."""
    crowd, ends = 20, threading.Event()
    renders, before_it = [0], list[int]()

    def again(visitor: str) -> None:
        while not ends.is_set():
            with render_lock.held(False, visitor):
                renders[0] += 1
                time.sleep(0.002)

    threads = [threading.Thread(target=again, args=(f"{i}",)) for i in range(crowd)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        earlier = renders[0]
        with render_lock.held(False, "click"):
            before_it.append(renders[0] - earlier)
    ends.set()
    for thread in threads:
        thread.join(60)
    assert max(before_it) <= 2 * crowd, before_it
