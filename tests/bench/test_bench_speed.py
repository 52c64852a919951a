"""`normviz bench speed`: every peer beside `train`, as ratios."""

from __future__ import annotations

import re

import pytest
import torch

from normviz import RunConfig
from normviz.bench import speed


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    size = RunConfig(depth=1, width=8, heads=2, seq_len=8, batch=2, steps=4)
    monkeypatch.setattr(speed, "SIZES", {"small": (size, ("post", "peri"))})
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)


def test_post_ln_and_peri_ln_are_measured_at_hero_size() -> None:
    heroes = {
        config.depth: beside for what, (config, beside) in speed.SIZES.items() if "hero" in what
    }
    assert heroes == {12: ("post", "peri"), 16: ("post", "peri")}


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_every_peer_has_a_ratio_and_the_engine_is_named() -> None:
    first, size, *rows, share = speed.measure(1).splitlines()
    assert first.startswith("speed: 1 rounds")
    assert re.match(r"small: engine (eager|tape)", size)
    placements = ["NormViz Post-LN", "NormViz Peri-LN"]
    assert [row[2:17].strip() for row in rows] == [*speed.PEERS, speed.OURS, *placements]
    assert rows[0].endswith("1.00 (1.00 to 1.00) times as fast as torch.nn")
    assert share.endswith("of the measured GEMM peak")


@pytest.mark.usefixtures("small")
def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "PEERS", {
        "torch.nn": speed.PEERS["torch.nn"], "GPT-2": ("a_package_not_there", speed.gpt2),
    })  # fmt: skip
    found = speed.measure(1).splitlines()
    assert found[-1] == "  GPT-2 is not installed: install tests/requirements.txt to measure it"
    assert not any(row.startswith("  GPT-2   ") for row in found)
