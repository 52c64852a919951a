"""The RMS of the logits at the steps with layers, in both engines, the store and the files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from peek import model_seen

from normviz import RunConfig, train
from normviz.export.tables import tables
from normviz.model.data import make_task
from normviz.result import collect
from normviz.runs import archive
from normviz.runs.lane import Lane
from normviz.runs.store import Store
from normviz.training.events import Step

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=40)
CHANGES = [
    {}, {"softcap": 2.0}, {"parametrisation": "mup", "width": 48, "heads": 4}, {"zloss": 0.1},
    {"scheme": "ngpt"}, {"scheme": "hyper"}, {"task": "masked", "mask": "none"}, {"dropout": 0.2},
]  # fmt: skip


@pytest.mark.parametrize("engine", ["tape", "eager"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_it_is_the_rms_of_the_logits_before_the_first_update(
    change: dict[str, object], engine: str
) -> None:
    config = TINY.replace(steps=2, **change)
    inputs, _ = make_task(config).tensors(0, torch.device("cpu"))
    with model_seen() as models:
        events = train(config, engine=engine)
        next(events)
        model = models[0]
        with torch.no_grad():
            model.clock.step, model.clock.share = 0, 0.0
            expected = model(inputs).square().mean().sqrt().item()
        first = next(events)
    assert isinstance(first, Step)
    assert first.logit_rms == pytest.approx(expected, rel=1e-5)


def test_it_is_there_where_layers_are_and_keeps_everywhere(tmp_path: Path) -> None:
    it = collect(train(TINY, record=[0, 7, 39]))
    found = it.steps.logit_rms
    assert np.flatnonzero(~np.isnan(found)).tolist() == [0, 7, 39]
    store = Store(tmp_path)
    store.adopt(it)
    run = store.latest(TINY.key)
    assert run is not None
    archive.save(it, tmp_path / "one.npz")
    archive.save_cells([it, it], tmp_path / "cells.npz", 2)
    (one,), cells = archive.load(tmp_path / "one.npz"), [*archive.load(tmp_path / "cells.npz")]
    np.testing.assert_array_equal(store.steps(run).logit_rms, found)
    np.testing.assert_array_equal(one.steps.logit_rms, found)
    for cell in cells:
        np.testing.assert_allclose(cell.steps.logit_rms, found, rtol=1e-7)
    column = tables([Lane("A", TINY, (it,))])["steps"]["logit_rms"].to_pylist()
    assert [i for i, x in enumerate(column) if x is not None] == [0, 7, 39]
    assert it.as_json(())["logit_rms"] == {i: found[i] for i in (0, 7, 39)}


def test_one_that_is_not_finite_is_inf_as_none_was_measured_is_nothing() -> None:
    steps = [
        e for e in train(TINY.replace(scheme="none", lr=10.0, optimizer="sgd"), engine="eager")
        if isinstance(e, Step)
    ]  # fmt: skip
    assert not math.isfinite(steps[-1].loss)
    assert all(
        step.logit_rms is not None and step.logit_rms > 0
        for step in steps
        if step.layers is not None
    )
