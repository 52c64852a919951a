"""What the product claims, measured: each claim on the seeds and settings that it names."""

from __future__ import annotations

import pytest
import torch

from normviz import RunConfig
from normviz.cores import cores
from normviz.execution import Ended, Local
from normviz.home import home
from normviz.maps.cell import train_cell
from normviz.result import Result, collect, result_of
from normviz.training.loop import train

pytestmark = pytest.mark.slow

SEEDS = range(5)
HERO = {seed: RunConfig(init_seed=seed) for seed in SEEDS}
PROSE = RunConfig(task="prose", depth=16)
CALM = RunConfig(scheme="none", init="torch")
ALL = [
    *HERO.values(),
    *(lane.replace(scheme="post") for lane in HERO.values()),
    PROSE,
    PROSE.replace(scheme="post"),
    CALM,
]
Runs = dict[str, Result]


def measure(config: RunConfig) -> Result:
    """One run on one thread, without probes."""
    torch.set_num_threads(1)
    return collect(train(config, record=()))


@pytest.fixture(scope="module")
def runs() -> Runs:
    """All runs, one a core at a time."""
    tasks = {config.key: (config.canonical(), False) for config in ALL}
    pool = Local(train_cell, tasks, home(), cores())
    ended = [event for event in pool.events() if isinstance(event, Ended)]
    assert [event.problem for event in ended] == [None] * len(ALL)
    return {event.task: result_of(event.result) for event in ended}


def final(runs: Runs, config: RunConfig) -> float:
    loss = runs[config.key].as_json(())["final_loss"]
    assert loss is not None
    return loss


def verdict(runs: Runs, config: RunConfig) -> str:
    return runs[config.key].verdict.kind


@pytest.mark.parametrize("seed", SEEDS)
def test_hero_pre_learns(runs: Runs, seed: int) -> None:
    assert 1.15 < final(runs, HERO[seed]) < 1.26
    assert verdict(runs, HERO[seed]) == "learned"


@pytest.mark.parametrize("seed", SEEDS)
def test_hero_post_stays_at_chance(runs: Runs, seed: int) -> None:
    post = HERO[seed].replace(scheme="post")
    started = runs[post.key].started
    assert started is not None
    assert final(runs, post) == pytest.approx(started.chance, abs=0.02)
    assert verdict(runs, post) == "at chance"


def test_the_same_on_prose(runs: Runs) -> None:
    post = PROSE.replace(scheme="post")
    assert final(runs, PROSE) < 2.8 < 3.1 < final(runs, post)
    assert [verdict(runs, lane) for lane in (PROSE, post)] == ["learned", "at chance"]


def test_without_norms_pytorchs_init_trains(runs: Runs) -> None:
    assert verdict(runs, CALM) == "learned"


@pytest.mark.parametrize("seed", SEEDS)
def test_without_its_final_norm_a_deep_pre_starts_far_higher(seed: int) -> None:
    pre = RunConfig(depth=96, steps=0, init_seed=seed)
    first = [measure(c).losses[0] for c in (pre, pre.replace(scheme="pre_nofinal"))]
    assert first[1] > 4 * first[0]
