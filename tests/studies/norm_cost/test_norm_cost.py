"""The norm cost: what it times is what it says, its counts are counted, its interval is one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from fake_gpu_kit import DEVICE, fake_gpu, moved
from numpy.typing import NDArray
from torch import nn

from normviz.config import RunConfig
from normviz.execution import TaskError
from normviz.runs.store import Store
from normviz.studies.norm_cost import measure as measure_
from normviz.studies.norm_cost import stored_results
from normviz.studies.norm_cost.contexts import EPS, build_module, calls
from normviz.studies.norm_cost.measure import BEST_OF, batch, count, measure, of_formula, one_round
from normviz.studies.norm_cost.result import (
    MIN_ROUNDS,
    CostSetting,
    Measurement,
    Ratio,
    cores,
    outer_rank,
    ratio,
)
from normviz.studies.norm_cost.variants import CASES, KEYS, VARIANTS
from normviz.training.captured import WARM_UP
from normviz.training.events import Started

TINY = CostSetting(width=32, tokens=64, seconds=1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    """The smallest there is, measured and kept."""
    store = Store(tmp_path_factory.mktemp("cost"))
    *_, made = measure(TINY, store)
    assert stored_results.measurements(store.folder) == [made]
    return made


# What is timed


@pytest.mark.parametrize("variant", ["rmsnorm_hand", "rmsnorm_fused"])
def test_own_rmsnorms_are_the_library_s(variant: str) -> None:
    x = torch.randn(3, 5, 32, dtype=torch.float64, requires_grad=True)
    weight, grad = torch.randn(32, dtype=torch.float64), torch.randn(3, 5, 32, dtype=torch.float64)
    results = []
    for module in (build_module(variant, 32).double(), nn.RMSNorm(32, EPS).double()):
        with torch.no_grad():
            (parameter,) = module.parameters()
            parameter.copy_(weight)
        y = module(x)
        results.append((y, *torch.autograd.grad(y, [x, parameter], grad)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_every_variant_has_a_module() -> None:
    x = torch.randn(4, 64)
    for variant in VARIANTS:
        assert build_module(variant.key, 64)(x).shape == x.shape
    for same in ("again", "layernorm_hand"):
        torch.testing.assert_close(build_module(same, 64)(x), build_module("layernorm", 64)(x))


# Counts


@pytest.mark.slow
def test_kernels_are_counted_and_views_are_none() -> None:
    x = torch.randn(8, 16)
    counted = count(lambda: (x * 2).view(16, 8).t().detach())
    assert counted.kernels == 1
    assert counted.bytes == 2 * x.numel() * 4  # one read, one written
    assert count(lambda: nn.LayerNorm(16)(x).shape).kernels >= 1
    assert count(lambda: x.sum(0)).operations == x.numel()


@pytest.mark.slow
def test_fused_layernorm_is_one_kernel_forward(measured: Measurement) -> None:
    assert measured.row("layernorm", "alone", "forward").kernels == 1
    assert measured.row("none", "alone", "forward").kernels == 0
    hand, fused = (measured.row(f"rmsnorm_{kind}", "alone") for kind in ("hand", "fused"))
    assert fused.kernels < hand.kernels
    assert fused.bytes < hand.bytes


def test_operations_follow_the_formula() -> None:
    """Forward, a number: LayerNorm x - mean (2), its square and their mean (2), two products and a
    sum (3); RMSNorm without mean and sum; DyT two products, a tanh, a sum. Statistics beside that."""
    tokens, width = 64, 256
    found = {key: of_formula(key, tokens, width, False).operations / tokens / width for key in KEYS}
    assert (
        found["layernorm"]
        == found["again"]
        == found["layernorm_hand"]
        == pytest.approx(7, abs=0.05)
    )
    assert found["rmsnorm"] == found["rmsnorm_hand"] == pytest.approx(4, abs=0.05)
    assert found["dyt"] == pytest.approx(4, abs=0.05)
    assert found["none"] == 0
    assert all(
        of_formula(key, tokens, width, True).operations
        > 2 * of_formula(key, tokens, width, False).operations
        for key in KEYS
        if key != "none"
    )


# The interval


def test_ranks_are_the_binomial_s() -> None:
    """From tables of the sign test: 95 % intervals for a median."""
    assert [outer_rank(n) for n in (6, 8, 9, 12, 20, 25, 60)] == [1, 1, 2, 3, 6, 8, 22]
    with pytest.raises(ValueError, match="5 rounds give no 95 % interval, at least 6"):
        outer_rank(5)


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    draws = rng.lognormal(0.2, 0.5, (2000, 20))
    held = [r.low <= np.exp(0.2) <= r.high for r in (ratio(d, np.ones(20)) for d in draws)]
    assert 0.94 < np.mean(held) < 0.98


def test_what_slows_the_whole_machine_down_cancels() -> None:
    rng = np.random.default_rng(0)
    machine = np.exp(np.linspace(0, 2, 20)) * rng.lognormal(0, 0.3, 20)
    found = ratio(1.07 * machine, machine)
    assert (found.median, found.low, found.high) == pytest.approx((1.07, 1.07, 1.07))


@pytest.mark.slow
def test_told_apart_means_beyond_layernorm_itself(measured: Measurement) -> None:
    def with_ratio(variant: str, it: Ratio) -> Measurement:
        rows = [replace(r, ratio=it) if r.variant == variant else r for r in measured.rows]
        return replace(measured, rows=tuple(rows))

    calm = with_ratio("again", Ratio(1.0, 0.99, 1.01))
    for interval, differs in ((Ratio(1.05, 1.02, 1.08), True), (Ratio(1.05, 0.99, 1.1), False)):
        it = replace(calm.row("dyt", "step"), ratio=interval)
        assert calm.differs(it) is differs
    shaken = with_ratio("again", Ratio(1.04, 1.02, 1.06))
    it = replace(shaken.row("dyt", "step"), ratio=Ratio(1.05, 1.03, 1.08))
    assert not shaken.differs(it)
    assert shaken.differs(replace(it, ratio=Ratio(0.95, 0.94, 0.99)))


# Turns and clocks


@pytest.mark.slow
def test_all_take_turns_in_an_order_of_chance() -> None:
    order: list[int] = []
    calls = [[lambda i=i: order.append(i) for i in range(7)]]
    rng, cpu = np.random.default_rng(0), torch.device("cpu")
    for _ in range(2):
        (seconds,) = one_round(calls, [[1] * 7], cpu, rng)
        assert seconds.shape == (7,)
    turns = [order[i : i + 7] for i in range(0, len(order), 7)]
    assert len(turns) == 2 * BEST_OF
    assert all(sorted(turn) == list(range(7)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1


def test_waiting_for_a_core_is_not_counted() -> None:
    """With one thread; what several do together only the wall's clock tells."""
    cpu = torch.device("cpu")
    assert batch(lambda: time.sleep(0.05), 1, cpu) < 0.025
    torch.set_num_threads(2)
    assert batch(lambda: time.sleep(0.05), 1, cpu) >= 0.05


# The measurement


@pytest.mark.slow
def test_all_variants_in_all_contexts(measured: Measurement) -> None:
    assert measured.setting == TINY
    assert measured.rounds >= MIN_ROUNDS
    keys = {(row.variant, row.context, row.passes) for row in measured.rows}
    assert keys == {(key, *case) for key in KEYS for case in CASES}
    for row in measured.rows:
        assert 0 < row.ratio.low <= row.ratio.median <= row.ratio.high
        assert row.seconds > 0
    for context, passes in CASES:
        assert measured.row("layernorm", context, passes).ratio == Ratio(1, 1, 1)
        lacks = measured.row("none", context, passes).kernels
        assert lacks < measured.row("layernorm", context, passes).kernels
        again = measured.row("again", context, passes)
        assert again.kernels == measured.row("layernorm", context, passes).kernels


@pytest.mark.slow
def test_a_step_has_five_norms(measured: Measurement) -> None:
    """Two a block and the final one: what lacks without them is one kernel each, forward."""
    alone, step = measured.row("layernorm", "alone"), measured.row("layernorm", "step")
    assert step.kernels - measured.row("none", "step").kernels >= 5 * 2
    assert alone.kernels >= 2


@pytest.mark.slow
def test_it_comes_back_as_it_was_kept(measured: Measurement, tmp_path) -> None:
    path = stored_results.keep(measured, tmp_path)
    (tmp_path / "cost" / "broken.json").write_text('{"setting": 1')
    assert stored_results.measurements(tmp_path) == [measured]
    stored_results.keep(
        replace(measured, when="2031-01-01T00:00:00+00:00"), tmp_path
    )  # in its place
    other = replace(measured, setting=replace(TINY, width=64), when="2030-01-01T00:00:00+00:00")
    stored_results.keep(other, tmp_path)
    assert [m.when[:4] for m in stored_results.measurements(tmp_path)] == ["2031", "2030"]
    assert path.is_file()


@pytest.mark.slow
def test_a_measurement_of_fewer_variants_is_kept(measured: Measurement, tmp_path: Path) -> None:
    """One without LayerNorm is not a measurement."""
    for lacks, kept in (("layernorm_hand", True), ("layernorm", False)):
        folder = tmp_path / lacks
        folder.mkdir()
        old = replace(measured, rows=tuple(r for r in measured.rows if r.variant != lacks))
        stored_results.keep(old, folder)
        assert stored_results.measurements(folder) == [old] * kept


def test_a_measurement_ships() -> None:
    it = stored_results.shipped()
    assert it.when[:2] == "20"
    assert {(row.variant, row.context, row.passes) for row in it.rows} == {
        (key, *case) for key in KEYS for case in CASES
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"width": 33}, "width is 33, allowed is a multiple of 32 from 32 to 1024"),
        ({"width": 2048}, "width is 2048, allowed is a multiple of 32 from 32 to 1024"),
        ({"tokens": 100}, "tokens is 100, allowed is a multiple of 64 from 64 to 16384"),
        ({"threads": 0}, f"threads is 0, allowed is a whole number from 1 to {cores()}"),
        ({"seconds": float("nan")}, "seconds is nan, allowed is a number from 1 to 300"),
        ({"device": "tpu"}, "device is 'tpu', allowed are cpu and cuda"),
        ({"width": 1024, "tokens": 4096, "device": "cuda"}, "GiB of memory and at most 4"),
        ({"width": 1024, "tokens": 16384}, "more than a run may take here"),
    ],
)
def test_what_is_not_allowed_is_said(changes: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        replace(CostSetting(), **changes)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA GPU")
def test_without_a_gpu_it_says_so(store: Store) -> None:
    with pytest.raises(ValueError, match="this machine has no CUDA GPU"):
        next(measure(CostSetting(device="cuda"), store))


def test_on_a_gpu_many_calls_are_one_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()

    class Graph:
        def __init__(self, *_: object, **more: object) -> None:
            self.replay = partial(told.append, "replayed")

        def wait_stream(self, other: object) -> None:
            told.append("waited")

    @contextmanager
    def inside(*_: object, **more: object) -> Iterator[None]:
        told.append("[")
        yield
        told.append("]")

    for name in ("Stream", "CUDAGraph", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, Graph)
    for name in ("stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, inside)
    replay = measure_.replay_of(lambda: told.append("called"), 4)
    replay()
    warm, calls = ["[", *["called"] * WARM_UP, "]"], ["[", *["called"] * 4, "]"]
    assert told == ["waited", *warm, *calls, "replayed"]


def test_nothing_in_a_norm_or_a_block_waits_for_a_gpu() -> None:
    """Else it could not be replayed."""
    with fake_gpu() as watch, mock.patch.object(nn.Module, "to", moved):
        for key in KEYS:
            for (context, _), call in calls(key, TINY, DEVICE).items():
                call()
                watch.found.clear()
                call()
                waits = {what for what, _ in watch.found} - {"to device"}
                assert waits == ({"to host"} if context == "step" else set()), (key, context)


# Beside runs that train


@pytest.fixture
def training(store: Store) -> int:
    """A run that trains, in this process as far as the store knows."""
    config = RunConfig(steps=20)
    run = store.enqueue(config)
    store.started(run, Started(config, "cpu", 1, 9, 3.3, None, None), os.getpid(), paused=False)
    return run


def test_it_gives_up_where_a_run_trains_for_long(
    store: Store, training: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_, "PATIENCE_SECONDS", 0.1)
    with pytest.raises(TaskError, match=r"has been training here for the last 0.1 s.*pause it"):
        next(measure(TINY, store))


@pytest.mark.slow
def test_no_round_is_timed_while_a_run_trains(
    store: Store, training: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that trains at the start, and one that goes on between two rounds; a pause lets it in."""
    rounds, pauses = list[bool](), list[float]()

    def timed(*given: Any) -> list[NDArray[np.float64]]:
        rounds.append(store.is_training())
        return one_round(*given)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        store.set_status(training, "paused")

    monkeypatch.setattr(measure_, "one_round", timed)
    monkeypatch.setattr(measure_, "time", SimpleNamespace(**{**vars(time), "sleep": pause}))
    measuring = measure(TINY, store)
    next(measuring)
    assert (rounds, len(pauses)) == ([False], 1)
    store.set_status(training, "running")
    next(measuring)
    assert (rounds, len(pauses)) == ([False, False], 2)


def test_a_run_whose_process_is_gone_does_not_train(store: Store, training: int) -> None:
    assert store.is_training()
    with store.db.transaction() as db:
        db.execute("UPDATE runs SET pid = ? WHERE id = ?", (2**22 + 1, training))
    assert not store.is_training()
