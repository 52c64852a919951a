"""The captured engine is eager bit by bit, also on a CPU, where it captures nothing; stubs are the GPU."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from normviz import RunConfig
from normviz.catalog.norms.batch_torch import WARMUP
from normviz.model.flat import Flat
from normviz.training.captured import WARM_UP, Captured, Replayed, settled
from normviz.training.events import Started, Step
from normviz.training.loop import begin, train

CPU = torch.device("cpu")
SMALL = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=6)
SETTINGS: tuple[dict[str, Any], ...] = (
    {}, {"scheme": "post"}, {"dropout": 0.1}, {"norm": "powernorm"}, {"norm": "tapernorm"},
    {"norm": "batchnorm"}, {"optimizer": "muon"}, {"optimizer": "sgd", "momentum": 0.9},
    {"parametrisation": "completep"}, {"clip": 0.5}, {"scheme": "hyper"}, {"scheme": "mhc"},
    {"scheme": "denseformer"}, {"scheme": "value_residual"}, {"scheme": "branchnorm"},
    {"scheme": "sigma_reparam"}, {"positions": "rope", "sinks": "on"}, {"tied": "on"},
    {"qk_clip": 0.2, "lr": 0.03}, {"task": "prose_split"}, {"lr": 10.0},
)  # fmt: skip
"""`tests.bench.gpu` compares these on a GPU."""


def bits(config: RunConfig, engine: Any) -> list[tuple[str, bytes | None]]:
    """The numbers of each step, but for which engine gave them."""
    return [
        (
            repr((e.loss, e.grad_norm, e.held_out, e.logit_rms)),
            None if e.layers is None else e.layers.tobytes(),
        )
        for e in train(config, record=(0, 1, 4, 5), engine=engine)
        if isinstance(e, Step)
    ]


@pytest.mark.parametrize("change", SETTINGS, ids=str)
def test_it_is_eager_bit_by_bit(change: dict[str, Any]) -> None:
    config = SMALL.replace(**change)
    assert bits(config, "captured") == bits(config, "eager")


def test_a_recurrent_net_is_eager_bit_by_bit() -> None:
    config = RunConfig(family="lstm").replace(depth=1, width=8, steps=2, batch=2)
    assert bits(config, "captured") == bits(config, "eager")


def test_what_it_does_not_run_eager_runs_and_says_why() -> None:
    started = next(iter(train(SMALL.replace(zloss=1e-3), engine="captured")))
    assert isinstance(started, Started)
    assert started.engine == "eager" and "z-loss" in started.why
    started = next(iter(train(SMALL, engine="captured")))
    assert isinstance(started, Started) and (started.engine, started.why) == ("captured", "")


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({}, WARM_UP),
        ({"norm": "powernorm"}, WARMUP + 1),
        ({"norm": "tapernorm", "steps": 100}, 42),
        ({"scheme": "branchnorm", "steps": 100}, 26),
    ],
    ids=str,
)
def test_it_captures_no_step_whose_kernels_change_later(change: dict[str, Any], first: int) -> None:
    config = SMALL.replace(**change)
    assert settled(config, begin(config)[0]) == first


class Stub:
    """A stream, or a graph that computes anew what a replay of one would."""

    def __init__(self, replay: Any = None) -> None:
        self.replay = replay

    def wait_stream(self, other: object) -> None:
        """Both are the host."""


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Replayed:
    """As on a GPU, with stubs."""
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stub())
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    it = Replayed(torch.device("cpu"), 2)
    it.stream = Stub()  # pyrefly: ignore[bad-assignment]
    return it


def test_each_function_is_captured_once_after_the_first_calls(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def function(what: bool) -> torch.Tensor:
        told.append("called")
        return torch.tensor([float(what)])

    def capture(function: Any, what: bool) -> None:
        replayed.graphs[(what,)] = (
            Stub(lambda: told.append(f"replayed {what}")),
            torch.ones(1) * what,
        )  # pyrefly: ignore

    monkeypatch.setattr(replayed, "_capture", capture)
    given = [bool(i % 2) for i in range(6)]
    assert [bool(replayed(function, what)) for what in given] == given
    assert told == ["called"] * 2 + ["replayed False", "replayed True"] * 2


def test_a_capture_that_fails_goes_on_as_eager_and_says_why(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def capture(function: Any) -> None:
        raise RuntimeError("operation not permitted\nwhen capturing")

    monkeypatch.setattr(replayed, "_capture", capture)
    run = [replayed(lambda: torch.ones(1)) for _ in range(2)]
    with pytest.warns(UserWarning, match="without a CUDA graph: operation not permitted$"):
        run.append(replayed(lambda: torch.ones(1)))
    assert [x.item() for x in (*run, replayed(lambda: torch.ones(1)))] == [1.0] * 4


def test_the_mask_that_a_replay_reads_is_drawn_before_it() -> None:
    model, task = begin(config := SMALL.replace(dropout=0.1))
    engine = Captured(config, model, Flat(model, CPU))
    engine.step(task.tensors(0, CPU), False)
    masks = [it.factors for it in engine.dropouts]
    drawn = [it.clone() for it in masks if it is not None]
    model.clock.step = 1
    engine.replayed = lambda *_: torch.zeros(2)  # pyrefly: ignore[bad-assignment]
    engine.step(task.tensors(1, CPU), False)
    assert all(a.factors is b for a, b in zip(engine.dropouts, masks, strict=True))
    assert len(drawn) == 2 * config.depth + 1
    assert not any(torch.equal(a, b) for a, b in zip(drawn, masks, strict=True) if b is not None)
