"""Runs of a stack are those runs alone, up to rounding; here without a GPU."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.training.engine import Unsupported
from normviz.training.events import Diverged, Event, Finished, Started, Step
from normviz.training.loop import train
from normviz.training.shape import shape_of
from normviz.training.stacked import together

CPU = torch.device("cpu")
SMALL = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=8)
RECORD = (0, 1, 7)


def stacked(configs: list[RunConfig], **more: Any) -> dict[int, list[Event]]:
    found = defaultdict[int, list[Event]](list)
    for i, event in together(configs, CPU, RECORD, **more):
        found[i].append(event)
    return found


def assert_alike(own: list[Event], its: list[Event]) -> None:
    assert [type(it) for it in own] == [type(it) for it in its]
    for a, b in zip(own, its, strict=True):
        if isinstance(a, Started) and isinstance(b, Started):
            assert (a.config, a.parameters, a.chance) == (b.config, b.parameters, b.chance)
            assert (a.engine, a.device) == ("stacked", "cpu")
        elif isinstance(a, Step) and isinstance(b, Step):
            assert (a.step, a.lr) == (b.step, b.lr)
            rough = {"rtol": 2e-3, "atol": 1e-5}  # AdamW's first steps are those of signs
            np.testing.assert_allclose(
                [a.loss, a.grad_norm, a.held_out or 0.0, a.logit_rms or 0.0],
                [b.loss, b.grad_norm, b.held_out or 0.0, b.logit_rms or 0.0], **rough,
            )  # fmt: skip
            assert (a.layers is None) == (b.layers is None)
            if a.layers is not None and b.layers is not None:
                np.testing.assert_allclose(a.layers, b.layers, rtol=0.02, atol=1e-4)
        else:
            assert a == b


@pytest.mark.parametrize(
    "shared",
    [
        {},
        {"scheme": "post", "norm": "rmsnorm", "tied": "on", "weight_decay": 0.1},
        {"scheme": "peri", "qk_norm": "head", "activation": "swiglu", "positions": "rope"},
        {"scheme": "admin", "task": "prose_split"},
    ],
    ids=str,
)
def test_runs_of_a_stack_are_those_runs_alone(shared: dict[str, Any]) -> None:
    base = SMALL.replace(**shared)
    configs = [
        base.replace(clip=0.5), base.replace(lr=1e-3, init_seed=1, warmup=4),
        base.replace(data_seed=2, schedule="cosine", lr_edits=((3, 1e-2),)),
    ]  # fmt: skip
    found = stacked(configs)
    for i, config in enumerate(configs):
        alone = list(train(config, record=RECORD, engine="eager"))
        ends = [it if not isinstance(it, Finished) else Finished(it.steps) for it in alone]
        assert_alike(found[i], ends)


KINDS = {it.streams: it.key for it in SCHEMES if shape_of(SMALL.replace(scheme=it.key)) is not None}


@pytest.mark.slow
@pytest.mark.parametrize("key", KINDS.values(), ids=KINDS.keys())
def test_all_kinds_of_streams_are_probed_together(key: str) -> None:
    configs = [SMALL.replace(scheme=key, init_seed=i, steps=2) for i in (0, 1)]
    found = stacked(configs)
    assert_alike(found[1], list(train(configs[1], record=RECORD, engine="eager")))


def test_a_run_that_diverges_leaves_the_others_as_they_are() -> None:
    bad = SMALL.replace(scheme="none", lr=10.0, steps=40)
    good = bad.replace(lr=1e-3)
    found = stacked([bad, good])
    (ended,) = (it for it in found[0] if isinstance(it, Diverged))
    (alone,) = (it for it in train(bad, engine="eager") if isinstance(it, Diverged))
    assert ended == alone
    assert_alike(found[1], list(train(good, record=RECORD, engine="eager")))


def test_which_runs_have_one_shape() -> None:
    assert shape_of(SMALL) == shape_of(SMALL.replace(lr=1.0, init_seed=4, clip=1.0)) is not None
    assert shape_of(SMALL) != shape_of(SMALL.replace(depth=3))
    for change in ({"dropout": 0.1}, {"zloss": 1e-3}, {"norm": "batchnorm"}, {"optimizer": "sgd"},
                   {"scheme": "ngpt"}, {"scheme": "sigma_reparam"}, {"decay_on": "matrices"},
                   {"qk_clip": 9.0}, {"loops": 2}):  # fmt: skip
        assert shape_of(SMALL.replace(**change)) is None, change
    assert shape_of(RunConfig(family="rnn")) is None


@pytest.mark.parametrize(
    "configs",
    [
        [SMALL, SMALL.replace(depth=3)],
        [SMALL.replace(dropout=0.1)],
        [SMALL.replace(scheme="branchnorm")],
    ],
)
def test_what_is_no_stack_is_refused(configs: list[RunConfig]) -> None:
    with pytest.raises(Unsupported):
        next(together(configs, CPU))
