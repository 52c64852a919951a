"""Which cells a sweep has, in which order, and what it refuses."""

from __future__ import annotations

import math

import pytest
from crossing_kit import case

from normviz import RunConfig
from normviz.config import ConfigError, seeded
from normviz.limits import MAX_SWEEP_CELLS
from normviz.studies.maps import Grid, SweepError, grid_of, make
from normviz.studies.maps.grid import coarse_first

HERO = RunConfig()


def grid(**words: str) -> Grid:
    return grid_of(words, HERO)


def test_every_combination_is_a_cell_with_its_config() -> None:
    it = grid(scheme="pre,post", depth="8,2", lr="1e-2,1e-3", steps="7")
    assert [(axis.field, axis.values) for axis in it.axes] == [
        ("scheme", ("pre", "post")), ("depth", (2, 8)), ("lr", (1e-3, 1e-2)),
    ]  # fmt: skip
    assert {(c.config.scheme, c.config.depth, c.config.lr) for c in it.cells} == {
        (s, d, lr) for s in ("pre", "post") for d in (2, 8) for lr in (1e-3, 1e-2)
    }
    assert {c.config.steps for c in it.cells} == {7}
    for cell in it.cells:
        for axis, i in zip(it.axes, cell.at, strict=True):
            assert getattr(cell.config, axis.field) == axis.values[i]


def test_one_value_is_a_setting_and_no_axis() -> None:
    it = grid(depth="3", lr="0.01")
    assert it.axes == ()
    assert [cell.config for cell in it.cells] == [HERO.replace(depth=3, lr=0.01)]


def test_seeds_move_both_seeds_together() -> None:
    it = grid(depth="2,3", seeds="3", data_seed="5")
    assert len(it.cells) == 6
    shallow = sorted((c for c in it.cells if c.config.depth == 2), key=lambda c: c.seed)
    assert [(c.config.init_seed, c.config.data_seed) for c in shallow] == [(0, 5), (1, 6), (2, 7)]
    assert [c.config for c in shallow] == seeded(HERO.replace(depth=2, data_seed=5), 3)


def test_any_setting_can_be_an_axis() -> None:
    for words in (
        {"warmup": "0,50", "init": "xavier,torch"}, {"clip": "off,1", "qk_norm": "off,on"},
        {"init_seed": "0,1,2"}, {"task": "markov,copy"},
    ):  # fmt: skip
        it = grid(**words)
        assert {axis.field for axis in it.axes} == set(words)
        assert len({cell.key for cell in it.cells}) == len(it.cells)


def test_corners_come_first_then_the_middle() -> None:
    it = grid(depth="2,4,8,16,32", lr="1e-4,3e-4,1e-3,3e-3,1e-2")
    assert {cell.at for cell in it.cells[:4]} == {(0, 0), (0, 4), (4, 0), (4, 4)}
    assert it.cells[4].at == (2, 2)
    assert {cell.at for cell in it.cells[:9]} == {(i, j) for i in (0, 2, 4) for j in (0, 2, 4)}


def test_the_longest_of_the_last_round_is_not_the_last() -> None:
    it = grid(depth="2,4,8,16,32", lr="1e-4,3e-4,1e-3,3e-3,1e-2,3e-2")
    assert [cell.config.depth for cell in it.cells[-5:]] == [32, 16, 8, 4, 2]


def test_a_map_is_whole_before_its_second_seed_begins() -> None:
    it = grid(scheme="pre,post", depth="2,4,8", seeds="2")
    assert [cell.seed for cell in it.cells] == [0] * 6 + [1] * 6
    assert sorted(coarse_first(it), key=lambda c: c.key) == sorted(it.cells, key=lambda c: c.key)


def test_values_may_be_numbers_too() -> None:
    it = make(HERO, {"depth": [2, 4], "clip": [None, 1.0]})
    assert it.axes[1].values == (1.0, None)  # no clipping is the largest clip
    assert it == grid_of({"depth": "2,4", "clip": "1,off"}, HERO)


BAD: list[tuple[dict[str, str], str]] = [
    ({"depht": "2,4"}, "unknown setting 'depht': known settings are seeds, scheme"),
    ({"depth": "2,0"}, "depth is '0', allowed is a whole number from 1 to 1000"),
    ({"depth": "2,,4"}, "depth is '', allowed is"),
    ({"depth": "2,4,2"}, "depth names 2 twice: give each value once"),
    ({"lr": "1e-3,0.001"}, "lr names 0.001 twice"),
    ({"scheme": "pre,psot"}, "scheme is 'psot', allowed is one of"),
    ({"seeds": "0"}, "seeds is 0, allowed is a whole number from 1 to 50"),
    ({"seeds": "x"}, "seeds is 'x', allowed is a whole number from 1 to 50"),
    ({"seeds": "2,3"}, "seeds is '2,3', allowed"),
    ({"seeds": "2", "init_seed": "0,1"}, "seeds moves init_seed by itself"),
    ({"heads": "4,5"}, "width is 32 and heads is 5, but the heads must divide"),
    ({"lr_edits": "2:0.1,3:0.1"}, "lr_edits can't be an axis"),
    ({"init_seed": ",".join(map(str, range(1001)))}, "has 1,001 runs and at most 1,000"),
    (
        {"depth": "100,120,140,160", "steps": "5000", "seeds": "20"},
        "hours of one CPU core and at most 12 are allowed",
    ),
]


def test_a_sweep_of_the_terminal_may_be_larger_than_a_page_s() -> None:
    seeds = ",".join(map(str, range(1001)))
    assert len(grid_of({"init_seed": seeds}, RunConfig(), MAX_SWEEP_CELLS).cells) == 1001
    long = {"depth": "100,120,140,160", "steps": "5000", "seeds": "20"}
    assert len(grid_of(long, RunConfig(), hours=math.inf).cells) == 80


@pytest.mark.usefixtures("by_eager")
def test_bad_input_gets_one_sentence() -> None:
    for words, sentence in BAD:
        with case(words):
            with pytest.raises((SweepError, ConfigError)) as caught:
                grid(**words)
            assert sentence in str(caught.value)
            assert "\n" not in str(caught.value)
