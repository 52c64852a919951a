"""Pictures are drawn one after another, each once, while nothing trains, or beside it after a long time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from normviz.execution import supervisor
from normviz.execution.supervisor import Job, Supervisor
from normviz.runs.store import Store, pictures


def test_each_picture_has_one_drawer_whatever_comes_of_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawers: list[SimpleNamespace] = []

    def start(module: str, folder: object, runs: str, stdin: int) -> SimpleNamespace:
        drawer = SimpleNamespace(runs=runs, code=None)
        drawer.poll = lambda: drawer.code
        drawer.kill = lambda: setattr(drawer, "code", -9)
        drawers.append(drawer)
        return drawer

    monkeypatch.setattr(supervisor, "start", start)
    monkeypatch.setattr(supervisor, "QUIET_SECONDS", 0.0)
    chief = Supervisor(store, slots=1)
    for n in (1, 2, 3):
        pictures.ask(store, [n, 9], f"visitor {n}")
    chief.workers = [SimpleNamespace(task=Job(run)) for run in (1, 2)]
    chief.paused = 1
    chief.draw()
    assert not drawers  # something trains
    chief.paused = 2
    for _ in range(5):
        chief.draw()
    assert [drawer.runs for drawer in drawers] == ["1,9"]
    chief.paused = 1
    chief.draw()
    assert drawers.pop().code == -9  # it is drawn later
    monkeypatch.setattr(supervisor, "LATE_SECONDS", 0.0)
    for _ in range(2):
        chief.draw()
    drawer = drawers.pop()
    assert (
        drawer.code is None and not drawers
    )  # nothing was drawn for long: training goes on beside it
    drawer.code, chief.picture, chief.paused = 0, 0, 2
    monkeypatch.setattr(supervisor, "DRAWING_SECONDS", -1.0)
    for _ in range(9):
        chief.draw()  # each takes too long
    assert [drawer.runs for drawer in drawers] == ["1,9", "2,9", "3,9"]
    assert [drawer.code for drawer in drawers] == [-9, -9, -9]
