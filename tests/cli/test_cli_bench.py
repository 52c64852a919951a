"""`normviz bench load` and `speed`: a server that does not answer, and a peer beside `train`."""

from __future__ import annotations

import re

import pytest
import torch
from cli_kit import normviz

from normviz import RunConfig
from normviz.cli import bench_server as server
from normviz.cli import bench_speed as speed


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
    asked, train = set[object](), speed.train
    monkeypatch.setattr(
        speed, "train", lambda *of, **more: asked.add(more["device"]) or train(*of, **more)
    )
    head, size_line, *rows, share, missing = speed.measure(1).splitlines()
    assert asked == {"cpu"}  # as its peers, and its clock
    assert head.startswith("speed: 1 rounds")
    assert re.match(r"small: engine (eager|tape)", size_line)
    ours = [speed.OURS, f"{speed.OURS} Post-LN", f"{speed.OURS} no probes"]
    assert [row[2:20].strip() for row in rows] == [first, *ours]
    assert rows[0].endswith("1.00 (1.00 to 1.00) times as fast as torch.nn")
    assert share.endswith("of the measured GEMM peak")
    assert missing == "  other is not installed: install tests/requirements.txt to measure it"
