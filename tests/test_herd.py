"""Pages that many ask for at once are drawn one after another; who has just come does not wait."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from backend_kit import wait_for

from normviz.home import shipped

sys.path.insert(0, str(shipped("app")))
import herd


def test_few_are_drawn_at_once_and_who_comes_goes_first() -> None:
    drawing, most, done = [0], [0], [0]
    free, lock = threading.Event(), threading.Lock()

    def draw() -> None:
        with herd.turn(is_new=False):
            with lock:
                drawing[0] += 1
                most[0] = max(most[0], drawing[0])
            free.wait(60)
            with lock:
                drawing[0] -= 1
                done[0] += 1

    threads = [threading.Thread(target=draw) for _ in range(20)]
    for thread in threads:
        thread.start()
    wait_for(lambda: drawing[0] == herd.AT_ONCE, "the first ones")
    with herd.turn(is_new=True):  # returns at once although all turns are taken
        assert drawing[0] == herd.AT_ONCE and done[0] == 0
    free.set()
    for thread in threads:
        thread.join(60)
    assert (most[0], done[0]) == (herd.AT_ONCE, 20)


def test_a_page_that_fails_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(herd, "PATIENCE_SECONDS", 60.0)
    for _ in range(2 * herd.AT_ONCE):
        with pytest.raises(ZeroDivisionError), herd.turn(is_new=False):
            _ = 1 / 0
    began = time.monotonic()
    with herd.turn(is_new=False):
        assert time.monotonic() - began < 30
