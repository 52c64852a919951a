"""A norm, placement or setting of each kind trains on a device that is not the CPU: it leaves no tensor
there, and seldom makes the host wait for it."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from unittest import mock

import pytest
import torch
from crossing_kit import case
from fake_gpu_kit import DEVICE, fake_gpu, moved, trained
from torch import nn

from normviz import RunConfig
from normviz.catalog import NORMS, SCHEMES
from normviz.model.gains import Shift
from normviz.training.events import Finished, Step
from normviz.training.loop import begin
from normviz.training.stacked import together

TINY = RunConfig(depth=1, width=16, heads=2, seq_len=8, batch=4, steps=3)
Waits = Counter[tuple[str, str]]


def trains(config: RunConfig) -> Waits:
    """Train with a record at step 0; what made the host wait in step 1."""
    marks = trained(config, record=(0,))
    assert isinstance(marks[-1][0], Finished)
    assert marks[0][0].device == "lazy"
    return in_step_1([seen for event, seen in marks if isinstance(event, Step)])


def in_step_1(seen: list[Waits]) -> Waits:
    """But for batches, which are sent without a wait."""
    before, after, *_ = seen
    return Counter({it: n for it, n in (after - before).items() if it[0] != "to device"})


def each_kind() -> list[str]:
    """Placements with a stream or a module that no earlier one has, one profiled, and gains that rise."""
    seen, found = set[object](), ["admin", "prores"]
    for scheme in SCHEMES:
        model, _ = begin(TINY.replace(scheme=scheme.key, norm=scheme.norm or "layernorm"))
        parts = {scheme.streams, *map(type, model.modules())}
        if parts - seen:
            found.append(scheme.key)
        seen |= parts
    return found


@pytest.mark.slow
def test_each_norm_and_each_kind_of_placement_trains_and_the_host_waits_once_a_step() -> None:
    """For the loss and the length of the gradients together: what a CUDA graph asks for."""
    kinds, norms = each_kind(), NORMS.keys()
    n = max(len(kinds), len(norms))
    for _, scheme, norm in zip(range(n), cycle(kinds), cycle(norms)):
        with case(scheme, norm):
            ((_, where), times), *others = trains(TINY.replace(scheme=scheme, norm=norm)).items()
            assert where.startswith("training/eager.py") and times == 1 and not others


def test_settings() -> None:
    for change in (
        {"dropout": 0.1, "zloss": 1e-4, "softcap": 30.0, "tied": "on", "clip": 1.0},
        {
            "optimizer": "muon", "positions": "rope", "qk_norm": "full", "v_norm": "on", "sinks": "on",
        },
        {"optimizer": "sgd", "momentum": 0.9, "task": "prose_split", "activation": "swiglu"},
        {"parametrisation": "completep", "positions": "sinusoidal", "rounding": "bf16"},
    ):  # fmt: skip
        with case(change):
            trains(TINY.replace(**change))


def test_on_a_recorded_step_the_host_waits_three_times() -> None:
    """For all numbers of the pass, the norms' scales, and the update ratio; also of a stack of runs."""
    marks = trained(TINY.replace(depth=3, dropout=0.1), record=range(3))
    alone = in_step_1([seen for event, seen in marks if isinstance(event, Step)])
    assert sum(alone.values()) == 3, alone
    configs = [TINY.replace(init_seed=i) for i in range(3)]
    seen = []
    with fake_gpu() as watch, mock.patch.object(nn.Module, "to", moved):
        for i, event in together(configs, DEVICE, range(3)):
            if i == 0 and isinstance(event, Step):
                seen.append(Counter(watch.found))
    assert sum(in_step_1(seen).values()) == 3, seen


def test_a_tensor_left_on_the_cpu_is_found() -> None:
    def forward(self: Shift, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(x.shape[-1])

    with (
        mock.patch.object(Shift, "forward", forward),
        pytest.raises(RuntimeError, match="same device"),
    ):
        trained(TINY.replace(scheme="residual_scaling"))
