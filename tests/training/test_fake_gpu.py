"""Every placement, norm and setting trains on a device that is not the CPU: it leaves no tensor there."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from typing import Any
from unittest import mock

import pytest
import torch
from fake_gpu_kit import DEVICE, fake_gpu, moved, trained, waits_inside
from torch import nn

from normviz import RunConfig
from normviz.catalog import NORMS, SCHEMES
from normviz.model.gains import Shift
from normviz.training.events import Finished, Step
from normviz.training.loop import begin
from normviz.training.stacked import together

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=1)


def assert_trains(config: RunConfig) -> None:
    marks, _ = trained(config, record=(0,))
    assert isinstance(marks[-1][0], Finished)
    assert marks[0][0].device == "lazy"


EACH = [
    TINY.replace(scheme=scheme, norm=norm)
    for scheme, norm in zip(SCHEMES.keys(), cycle(NORMS.keys()))
]
"""Each placement, and each norm in two or three of them."""


def test_each_norm_is_in_a_placement_that_takes_it() -> None:
    assert {config.placed().norm for config in EACH} == set(NORMS.keys())


@pytest.mark.slow
@pytest.mark.parametrize("config", EACH, ids=[f"{one.scheme}-{one.norm}" for one in EACH])
def test_every_placement_and_every_norm(config: RunConfig) -> None:
    assert_trains(config)


@pytest.mark.parametrize(
    "change",
    [
        {"dropout": 0.1, "zloss": 1e-4, "softcap": 30.0, "tied": "on", "clip": 1.0},
        {
            "optimizer": "muon",
            "positions": "rope",
            "qk_norm": "full",
            "v_norm": "on",
            "sinks": "on",
        },
        {"optimizer": "sgd", "momentum": 0.9, "task": "prose_split", "activation": "swiglu"},
        {"parametrisation": "completep", "positions": "sinusoidal", "rounding": "bf16"},
    ],
)
def test_settings(change: dict[str, Any]) -> None:
    assert_trains(TINY.replace(**change))


def test_the_host_waits_once_a_step() -> None:
    """For the loss and the length of the gradients together; batches are sent without a wait."""
    marks, _ = trained(TINY.replace(steps=6), record=())
    found = [seen for event, seen, _ in marks if isinstance(event, Step)]
    waits = found[3] - found[2]
    places = [where for what, where in waits if what != "to device"]
    assert len(places) == 1 and places[0].startswith("training/eager.py"), waits


def test_on_a_recorded_step_the_host_waits_three_times() -> None:
    """For all numbers of the pass, for the norms' scales, and for the update ratio."""
    marks, _ = trained(TINY.replace(steps=6, depth=4, dropout=0.1), record=range(6))
    found = [seen for event, seen, _ in marks if isinstance(event, Step)]
    waits = {it: n for it, n in (found[3] - found[2]).items() if it[0] != "to device"}
    assert sum(waits.values()) == 3, waits


def test_a_tensor_left_on_the_cpu_is_found() -> None:
    def forward(self: Shift, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(x.shape[-1])

    scheme = next(s.key for s in SCHEMES if any(isinstance(m, Shift) for m in _modules(s.key)))
    with (
        mock.patch.object(Shift, "forward", forward),
        pytest.raises(RuntimeError, match="same device"),
    ):
        trained(TINY.replace(scheme=scheme))


def _modules(key: str) -> list[torch.nn.Module]:
    return list(begin(TINY.replace(scheme=key))[0].modules())


@pytest.mark.slow
@pytest.mark.parametrize("key", {scheme.streams: scheme.key for scheme in SCHEMES}.values())
def test_nothing_waits_inside_of_a_pass(key: str) -> None:
    """What a CUDA graph asks for, of one placement of each kind of stream."""
    assert waits_inside(TINY.replace(scheme=key), False) == {}


def test_on_a_recorded_step_of_a_stack_the_host_waits_as_often_as_for_one_run() -> None:
    waits = []
    for n in (2, 3):
        configs = [TINY.replace(steps=3, init_seed=i) for i in range(n)]
        marks = []
        with fake_gpu() as watch, mock.patch.object(nn.Module, "to", moved):
            for i, event in together(configs, DEVICE, range(3)):
                if i == 0 and isinstance(event, Step):
                    marks.append(Counter(watch.found))
        waits.append({it: n for it, n in (marks[1] - marks[0]).items() if it[0] != "to device"})
    assert waits[0] == waits[1] and sum(waits[0].values()) == 3, waits
