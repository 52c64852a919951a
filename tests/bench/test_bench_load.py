"""`normviz bench load`: real visitors of a real server, and the table that says what they saw."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from normviz.app.bench.load_visitor import Visitor
from normviz.app.bench.load_visitors import Crowd

from normviz.bench.load import Load, Observed, Phase, duel, measure, table
from normviz.bench.weigh import Weight
from normviz.limits import estimated_seconds

NOBODY = Observed(0, 0, [], [], [], [], 0.0)
LIGHT = Weight(200.0, 300.0, False, ())


def figures(text: str) -> dict[str, str]:
    """The lines of the table: what, and how much."""
    pairs = (re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in text.splitlines()[1:])
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


@pytest.mark.slow
def test_visitors_come_watch_and_leave_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """In longer phases where the machine is too busy for an update and a new page within two seconds."""
    monkeypatch.setattr("normviz.bench.load.SETTLE_SECONDS", 0.2)
    monkeypatch.setattr("normviz.bench.load.FEW", 2)
    for seconds in (2, 8, 32):
        found = figures(measure(watchers=4, queue=3, seconds=seconds, rounds=1, churn=1.0))
        updates = found["updates a second at each"].split()[0]
        page = found["new visitor, page usable after, s"].split()[0]
        if "no" not in (updates, page) and float(updates):
            break
    assert float(updates) > 0
    assert float(page) > 0
    assert found["visitors held"] == "4 of 4"
    assert found["visits that failed"] == "0"
    assert found["server has loaded PyTorch"] == "no"
    assert int(found["supervisor and its workers, MiB"]) > 100


def phase(rate: float, seen: Observed = NOBODY) -> Phase:
    return Phase(10.0, rate, 0.1, 0.05, 0.0, seen, [LIGHT] * 3)


def test_throughput_is_held_against_the_phases_around_it() -> None:
    seen = Observed(2, 0, [3.0, 2.0], [0.5, 0.7], [0.25], ["OSError: gone"], 0.0)
    phases = [phase(100), phase(90, seen), phase(200), phase(100, seen), phase(200)]
    load = Load(2, 50, 0.5, [0.3, 0.4], phase(100, replace(seen, failures=[])), phases)
    assert load.kept() == pytest.approx([0.6, 0.5])
    found = figures(table(load))
    assert found["training throughput kept"] == "55% (50% to 60%)"
    assert found["updates a second at each"] == "2.5 (worst of 4: 2.0)"
    assert found["longest pause between two, s"] == "0.7"
    assert found["server, 2 sessions, MiB"] == "200"
    assert found["visits that failed"] == "2" and "OSError: gone" in table(load)


def test_the_duel_lasts_as_long_as_it_is_watched() -> None:
    for seconds in (10, 500):
        lanes = duel(seconds)
        assert estimated_seconds(lanes[0]) >= seconds
        assert {lane.scheme for lane in lanes} == {"pre", "post"}


def test_a_visitor_counts_updates_only_while_its_duel_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    one = Visitor("http://127.0.0.1:1", "", asyncio.Event())
    one.mark()
    for seconds, training in ((5, True), (2, True), (3, False), (60, False)):
        now[0] += seconds
        one.count(training)
    assert (one.trained, one.gap) == (5.0, 5.0)  # neither the wait before nor the end counts
    one.mark()
    assert (one.trained, one.gap) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "trained", "counts"),
    [(2.0, 1.5, True), (2.0, 0.5, False), (60.0, 4.0, True), (60.0, 2.5, False)],
)
def test_a_visitor_has_a_rate_if_its_duel_trained_for_three_seconds_or_half_of_the_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, trained: float, counts: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    crowd = Crowd("http://127.0.0.1:1", "")
    one = Visitor(crowd.base, "", crowd.looking, interactive=0.1)
    crowd.there[one] = None  # type: ignore[assignment]
    crowd.mark()
    now[0] += seconds - trained
    one.count(True)
    one.updates = 6
    now[0] += trained
    assert crowd.mark()["rates"] == ([6 / trained] if counts else [])
