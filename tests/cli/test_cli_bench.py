"""`normviz bench load` and `speed`: real visitors of a real server, and every peer beside `train`."""

from __future__ import annotations

import asyncio
import re

import pytest
import torch
from cli_kit import normviz
from normviz.app.crowd import Visitor

from normviz import RunConfig
from normviz.bench import server, speed
from normviz.bench.load import Load, Observed, Phase, measure
from normviz.bench.server import Weight

NOBODY = Observed(0, 0, [], [], [], [], 0.0)


def figures(text: str) -> dict[str, str]:
    """The lines of the table: what, and how much."""
    pairs = (re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in text.splitlines()[1:])
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


@pytest.mark.slow
def test_visitors_come_watch_and_leave_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normviz.bench.load.SETTLE_SECONDS", 0.2)
    monkeypatch.setattr("normviz.bench.load.FEW", 2)
    found = figures(measure(watchers=2, queue=1, seconds=2, rounds=1, churn=1.0))
    assert found["visitors held"] == "2 of 2"
    assert found["visits that failed"] == "0"
    assert found["server has loaded PyTorch"] == "no"
    assert int(found["supervisor and its workers, MiB"]) > 100


def test_throughput_is_held_against_the_phases_around_it() -> None:
    phases = [
        Phase(10.0, rate, 0.1, 0.05, 0.0, NOBODY, [Weight(200.0, 300.0, False)])
        for rate in (100, 90, 200, 100, 200)
    ]
    assert Load(2, 50, 0.5, [], phases[0], phases).kept() == pytest.approx([0.6, 0.5])


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


@pytest.mark.slow
def test_a_server_that_does_not_answer_in_time_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "START_SECONDS", 0)
    result = normviz("bench", "load")
    assert result.exit_code == 2
    assert "the server did not answer at http://127.0.0.1:" in result.stderr


@pytest.mark.slow
def test_a_peer_has_a_ratio_and_one_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = RunConfig(depth=1, width=8, heads=2, seq_len=8, batch=2, steps=4)
    monkeypatch.setattr(speed, "SIZES", {"small": (size, ("post",))})
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    first = next(iter(speed.PEERS))
    peers = {first: speed.PEERS[first], "other": ("a_package_not_there", speed.gpt2)}
    monkeypatch.setattr(speed, "PEERS", peers)
    head, size_line, *rows, share, missing = speed.measure(1).splitlines()
    assert head.startswith("speed: 1 rounds")
    assert re.match(r"small: engine (eager|tape)", size_line)
    ours = [speed.OURS, f"{speed.OURS} Post-LN", f"{speed.OURS} no probes"]
    assert [row[2:20].strip() for row in rows] == [first, *ours]
    assert rows[0].endswith("1.00 (1.00 to 1.00) times as fast as torch.nn")
    assert share.endswith("of the measured GEMM peak")
    assert missing == "  other is not installed: install tests/requirements.txt to measure it"
