"""What the product claims of its first duel, measured on the seed that it opens with."""

from __future__ import annotations

import pytest

from normviz import RunConfig
from normviz.result import Result, collect
from normviz.training.loop import train

pytestmark = pytest.mark.slow


def measured(config: RunConfig) -> tuple[Result, float]:
    """A run without probes, and its final loss."""
    found = collect(train(config, record=()))
    loss = found.as_json(())["final_loss"]
    assert loss is not None
    return found, loss


def test_hero_pre_learns() -> None:
    found, loss = measured(RunConfig())
    assert 1.15 < loss < 1.26
    assert found.verdict.kind == "learned"


def test_hero_post_stays_at_chance() -> None:
    found, loss = measured(RunConfig(scheme="post"))
    assert found.started is not None
    assert loss == pytest.approx(found.started.chance, abs=0.02)
    assert found.verdict.kind == "at chance"
