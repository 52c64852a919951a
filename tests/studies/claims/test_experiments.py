"""The six experiments and other newer records, their numbers, labs, and the figure of one point a run."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from claims_kit import TINY

from normviz import RunConfig
from normviz.model.data import make_task
from normviz.runs import Recording, Steps, collect
from normviz.studies.claims import CLAIMS, Claim
from normviz.studies.claims import figure as figures
from normviz.studies.claims.evidence import (
    FINAL,
    GRADIENT,
    GRADIENT_GROWTH,
    LATE_SPIKE,
    CellResult,
    Quantity,
    Sample,
    relapsed,
    setting,
)
from normviz.studies.claims.numbers import (
    best_cut,
    best_rate,
    depth_slope,
    largest,
    left_out,
    separation,
    wrong_by_majority,
    wrong_elsewhere,
)
from normviz.studies.claims.record import Scatter
from normviz.studies.claims.stored import (
    ClaimResult,
    Series,
    at_edge,
    explained,
    misfits,
    read_result,
    shipped_result,
    write,
)
from normviz.studies.labs import alike, composite, confidence, drift, drop, operations, update
from normviz.studies.labs.model import begun, trained
from normviz.studies.maps.grid import Cell
from normviz.training.events import Started, Step
from normviz.training.loop import train

# The records


def test_a_card_names_the_rates_that_were_chosen_at_an_edge_of_those_tried() -> None:
    edges = {}
    for key in ("C28", "E7", "X4", "C19"):
        result = shipped_result(CLAIMS[key])
        assert result is not None
        edges[key] = at_edge(CLAIMS[key], result)
        assert ("a better one may lie beyond" in explained(CLAIMS[key], result)) == bool(edges[key])
    assert edges == {
        "C28": [],
        "E7": [],
        "X4": [],
        "C19": ["48 blocks, LayerNorm"],
    }


@pytest.mark.parametrize("key", ["X2", "X3"])
def test_the_edge_lies_within_the_values_that_were_tried(key: str) -> None:
    """In most seeds the largest value that trains is neither none nor the last one tried."""
    claim, result = CLAIMS[key], shipped_result(CLAIMS[key])
    assert result is not None
    name = {"X2": "branch_gain", "X3": "lr"}[key]
    for arm in claim.arms:
        tried = {getattr(cell.config, name) for cell in claim.grid(arm, 1).cells}
        assert 0 < median(result.numbers[arm]) < max(tried), arm


# Numbers


def cell(good: bool = True, loss: float = 1.3, **settings: Any) -> CellResult:
    """A run of which only its end is known."""
    config, end = RunConfig(**settings), loss if good else 3.3
    steps = [Step(i, end, 1e-3, norm, None, loss) for i, norm in enumerate((2.0, 1.0, 8.0, 1.0))]
    started = Started(config, "cpu", 1, 9, 3.33, 1.1, None)
    it = Recording(config, started, "finished", steps=Steps.of(steps, config.depth))
    return CellResult(Cell(config, (), 0), it)


def test_the_separation_is_the_share_of_pairs_in_order_within_an_arm() -> None:
    depth = setting("depth")
    mixed = [cell(True, depth=1), cell(True, depth=3), cell(False, depth=2), cell(False, depth=1)]
    other = [cell(True, depth=9), cell(False, depth=8)]
    alike = [cell(True, depth=1), cell(True, depth=2)]
    sample = Sample({"a": mixed, "b": other, "c": alike})
    assert separation(depth, "a")(sample) == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert separation(depth)(sample) == pytest.approx((2.5 / 4 + 1) / 2), "the third has one kind"
    assert math.isnan(separation(depth, "c")(sample))


def test_a_cut_is_judged_by_the_runs_that_it_was_not_taken_from() -> None:
    arms = [[(1.0, False), (2.0, True)], [(3.0, False), (4.0, True)]]
    assert [best_cut(arm) for arm in arms] == [2.0, 4.0]
    assert left_out(arms) == [[1], [0]]
    assert best_cut([(1.0, False), (1.0, False), (0.5, False)]) == math.inf
    assert best_cut([(1.0, True), (1.0, False), (1.0, True), (0.5, False)]) == 1.0
    depth = setting("depth")
    runs = [[cell(good, depth=int(x)) for x, good in arm] for arm in arms]
    assert wrong_elsewhere(depth)(Sample({"a": runs[0], "b": runs[1]})) == 0.5


def test_a_word_for_all_and_one_for_each_group_are_those_of_the_majority() -> None:
    kinds = {1: (True, True, True), 2: (False, False, True)}
    runs = [cell(good, depth=depth) for depth, many in kinds.items() for good in many]
    sample = Sample({"a": runs[:3], "b": runs[3:]})
    assert wrong_by_majority()(sample) == pytest.approx(2 / 6)
    assert wrong_by_majority("depth")(sample) == pytest.approx(1 / 6)


def test_a_run_that_fell_back_to_chance_has_relapsed() -> None:
    def run(*losses: float) -> CellResult:
        many = np.repeat(losses, 20)
        steps = [Step(i, x, 1e-3, 1.0, None, x) for i, x in enumerate(map(float, many))]
        config = RunConfig(steps=len(many))
        started = Started(config, "cpu", 1, 9, 3.32, 1.1, None)
        it = Recording(config, started, "finished", steps=Steps.of(steps, config.depth))
        return CellResult(Cell(config, (), 0), it)

    level = relapsed(3.22)
    assert [level.of(run(*ends)) for ends in ((3.32, 3.1, 3.31), (3.32, 3.1, 3.2), (3.32, 3.33))] == [
        1.0, 0.0, 0.0,
    ]  # fmt: skip


def test_the_largest_setting_and_its_exponent() -> None:
    runs = [cell(gain <= 1 / depth, depth=depth, branch_gain=gain)
            for depth in (2, 4) for gain in (0.25, 0.5, 1.0)]  # fmt: skip
    sample = Sample({"a": runs})
    of = {depth: largest("a", "branch_gain", depth=depth) for depth in (2, 4)}
    assert [number(sample) for number in of.values()] == [0.5, 0.25]
    assert depth_slope(of)(sample) == pytest.approx(-1.0)
    assert largest("a", "branch_gain", depth=4, branch_gain=1.0)(sample) == 0.0


def test_the_best_rate_is_of_the_seed_itself() -> None:
    runs = [cell(loss=loss, lr=lr) for lr, loss in ((0.001, 1.5), (0.002, 1.2), (0.004, 1.3))]
    assert best_rate("a")(Sample({"a": runs})) == 0.002


def test_gradients_of_a_run() -> None:
    assert GRADIENT.of(cell()) == 2.0
    assert GRADIENT_GROWTH.of(cell()) == 4.0
    assert LATE_SPIKE.of(cell()) == pytest.approx(8 / 4.5)


# The figure

HIGH = Quantity("rate", "", lambda one: one.config.lr)
FEW = Claim(
    "T4", "Two rates", "A rate that is too small learns nothing in 60 steps.", "the tests",
    {
        "slow": {"label": "slow", "depth": "1,2", "lr": "1e-5", **{**TINY, "steps": "60"}},
        "fast": {"label": "fast", "depth": "1,2", "lr": "0.03", **{**TINY, "steps": "60"}},
    },
    {}, (), "Nothing.", Scatter(HIGH, FINAL, log_x=True, names_misfits=True), seeds=1,
)  # fmt: skip


def recorded(config: RunConfig) -> CellResult:
    return CellResult(Cell(config, (0,), 0), collect(train(config)))


@pytest.fixture(scope="module")
def result() -> ClaimResult:
    samples = [
        Sample({arm: [recorded(c.config) for c in FEW.grid(arm, 1).cells] for arm in FEW.arms})
    ]
    shown = figures.series(FEW, samples, {})
    return ClaimResult("T4", 2, "2026-01-01", 1, 1.0, FEW.settings(), (), {}, shown, [])


def test_a_scatter_has_a_point_a_run_and_says_which_train(result: ClaimResult, tmp_path) -> None:
    slow, fast = result.figure
    assert slow.x == [1e-5] * 2 and fast.x == [0.03] * 2
    assert slow.trains == [False, False] and len(fast.trains) == 2
    write(result, tmp_path / "T4.json")
    assert list(read_result(tmp_path / "T4.json").figure[0].trains) == [False, False]


def test_the_misfits_of_a_cut_from_the_others_are_named(result: ClaimResult) -> None:
    def shown(*arms: Series) -> ClaimResult:
        return replace(result, figure=list(arms))

    good = Series("a", "A", "pre", [3.0, 4.0], [[1.0], [1.0]], [True, True])
    bad = Series("b", "B", "pre", [1.0, 2.0, 5.0], [[3.0]] * 3, [False, False, False])
    other = Series("c", "C", "mixln", [3.5, 1.5], [[1.0], [3.0]], [True, False])
    assert misfits(shown(good, bad, other)) == (
        "3 of 7 runs of the figure train, and to say that none do is wrong for 3. The cut that is best for "
        "the others is wrong for 3: A (2 of 2), B (1 of 3)."
    )
    assert misfits(shown(good, good)).endswith("wrong for 0: none.")
    assert "The cut that is best for the others" in explained(FEW, result)


# Labs

RUN = RunConfig(depth=2, width=8, heads=2, seq_len=8, batch=4, steps=20, lr=0.01)


def test_inputs_that_do_not_move_do_not_drift() -> None:
    still, moved = (drift.measure(RUN.replace(lr=lr))["drift"] for lr in (1e-9, 0.01))
    assert still < 1e-6 < 1e-3 < moved


def test_the_statistics_of_an_input_are_in_units_of_its_rms() -> None:
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    one, larger = drift.of_channels(x), drift.of_channels(7 * x)
    torch.testing.assert_close(one, larger)
    rms = x.square().mean().sqrt()
    torch.testing.assert_close(one[0], x.flatten(0, 1).mean(0) / rms)


@pytest.mark.parametrize("scheme", ["hyper", "mhc"])
def test_the_product_of_mixtures_carries_a_state_whose_branches_are_silent(scheme: str) -> None:
    found = composite.measure(RUN.replace(scheme=scheme, lr=1e-9, steps=1))
    assert found["forward"] == pytest.approx(1.0, abs=1e-4), "they start without a gain"
    assert found["backward"] == pytest.approx(1.0, abs=1e-4)
    config = RUN.replace(scheme=scheme, lr=0.03)
    model, task = trained(config)
    with torch.no_grad():
        for block in model.blocks:
            for wire in (block.attention, block.ffn):
                last = wire.branch.out if hasattr(wire.branch, "out") else wire.branch.down
                last.weight.zero_()
                last.bias.zero_()
        wires = [wire for block in model.blocks for wire in (block.attention, block.ffn)]
        tap, seen = composite.Mixtures(wires), list[torch.Tensor]()

        def both(site: str, index: int, x: torch.Tensor, /) -> torch.Tensor:
            if site == "stream":
                seen.append(x)
            return tap(site, index, x)

        model(task.tensors(0, torch.device("cpu"))[0], both)
    first, last = (x.unflatten(-1, (4, -1)).double() for x in (seen[0], seen[-1]))
    torch.testing.assert_close(tap.product @ first, last, rtol=1e-4, atol=1e-5)


def test_other_placements_have_no_mixtures() -> None:
    with pytest.raises(ValueError, match="'pre' mixes no copies"):
        composite.measure(RUN)


def test_logits_that_overshoot_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = confidence.measure(RUN)
    made = confidence.trained

    def loud(config: RunConfig):
        model, task = made(config)
        with torch.no_grad():
            model.head.weight.mul_(4.0)
        return model, task

    monkeypatch.setattr(confidence, "trained", loud)
    found = confidence.measure(RUN)
    assert found["end"] == pytest.approx(4 * plain["end"], rel=1e-3)
    assert found["factor"] == pytest.approx(plain["factor"] / 4, rel=0.1)
    assert found["loss"] > plain["loss"]


def test_a_norm_with_running_statistics_is_judged_by_them() -> None:
    """The loss of a row does not depend on the others."""
    config = RUN.replace(norm="batchnorm", steps=5)
    model = trained(config)[0].eval()
    held_out = make_task(config.replace(batch=128)).held_out_tensors(torch.device("cpu"))
    assert held_out is not None
    with torch.no_grad():
        alone = [
            float(model.loss(held_out[0][i : i + 1], held_out[1][i : i + 1])) for i in range(128)
        ]
    assert confidence.measure(config)["loss"] == pytest.approx(sum(alone) / 128, rel=1e-4)


def test_a_task_without_a_held_out_part_is_refused() -> None:
    for lab in (confidence, drift, drop):
        with pytest.raises(ValueError, match="nothing is held out"):
            lab.measure(RUN.replace(task="prose"))


@pytest.mark.parametrize(("scheme", "least", "most"), [("post", 0.999, 1.001), ("pre", 1.1, 9.0)])
def test_drop_says_how_the_stream_grows(scheme: str, least: float, most: float) -> None:
    found = drop.measure(RUN.replace(scheme=scheme, task="prose_split", depth=3, lr=1e-9))
    assert least <= found["growth"] <= most


def test_streams_of_silent_blocks_are_alike_and_the_first_block_gets_its_share_of_the_gradient() -> (
    None
):
    config = RUN.replace(depth=4, task="prose_split", lr=1e-9)
    silent, loud = (alike.measure(config.replace(branch_gain=gain)) for gain in (0.001, 10.0))
    assert silent["early"] == pytest.approx(1.0, abs=1e-5) == silent["deep"]
    assert 0.0 < loud["early"] < loud["deep"] < 0.99, "a stream that has grown turns less"
    assert alike.measure(config.replace(scheme="post"))["deep"] < 0.99
    halved = config.replace(depth=2, steps=0)
    model, task = trained(halved)
    model.loss(*task.tensors(0, torch.device("cpu"))).backward()
    norms = [
        sum(float(p.grad.square().sum()) for p in block.parameters() if p.grad is not None) ** 0.5
        for block in model.blocks
    ]
    assert alike.measure(halved)["gradient"] == pytest.approx(norms[0] / norms[1])


def test_the_operations_of_a_norm_and_of_a_step_are_those_of_their_formulas() -> None:
    wide = RunConfig(depth=1, width=64, heads=1, seq_len=8, batch=4, steps=0)
    layer, rms = (operations.measure(wide.replace(norm=it)) for it in ("layernorm", "rmsnorm"))
    assert rms["norm"] < layer["norm"] and rms["bytes"] < layer["bytes"]
    symbols = begun(wide)[0].head.weight.shape[0]
    products = 12 * 64**2 + 64 * symbols + 2 * 8 * 64  # attention sees all 8 positions
    assert layer["share"] == pytest.approx(
        100 * 3 * layer["norm"] * 64 / (3 * 2 * products + 3 * layer["norm"] * 64), rel=0.02
    )


@pytest.mark.slow
def test_a_step_of_all_parameters_changes_deepnorm_more_with_depth_and_one_of_matrices_not() -> (
    None
):
    start = RUN.replace(scheme="deepnorm", steps=0)
    few, more = (update.measure(start.replace(depth=depth)) for depth in (2, 8))
    assert more["sgd"] > 1.5 * few["sgd"] and more["adam"] > 1.5 * few["adam"]
    assert more["sgd_matrices"] == pytest.approx(few["sgd_matrices"], rel=0.3)
