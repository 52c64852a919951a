"""`normviz bench churn`: visitors of a shared server come and go, from duel to duel."""

from __future__ import annotations

import pytest
from hosted_kit import turn_on
from test_bench_load import figures

from normviz import hosted
from normviz.bench.churn import Churned, duel, measure, table
from normviz.bench.load import Observed
from normviz.bench.weigh import Weight


@pytest.mark.slow
def test_visitors_of_a_shared_server_come_and_go() -> None:
    for minutes in (0.1, 0.5, 2.0):  # longer where the machine is too busy for two visitors
        found = figures(measure(watchers=3, per_second=1.0, minutes=minutes))
        came, _, _ = found["visitors who came"].partition(",")
        if int(came) > 1:
            break
    assert int(came) > 1 and found["visits that failed"] == "0"
    assert found["server has loaded PyTorch"] == "no"
    assert int(found["supervisor and its workers, MiB"]) > 100


def test_the_table_shows_whether_memory_still_grows() -> None:
    seen = Observed(2, 0, [3.0], [0.5], [0.2, 0.4], ["OSError: late"], 0.25)
    weights = [Weight(200.0 + grown, 300.0, False, ()) for grown in range(0, 120, 10)]
    text = table(Churned(30.0, 5, seen, 12.0, weights), 2, 0.5)
    found = figures(text)
    assert found["visitors who came"] == "2, to 5 duels in a row"
    assert found["server in 6 parts of the time, MiB"] == "205, 225, 245, 265, 285, 305"
    assert found["all of NormViz, MiB"] == "610"
    assert found["the visitors' own delay, at most, s"] == "0.25"
    assert found["visits that failed"] == "1" and "OSError: late" in text


def test_its_duels_are_within_the_limits_of_a_shared_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn_on(monkeypatch)
    hosted.check(duel(7))
    assert duel(7) != duel(8)
