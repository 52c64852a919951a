"""The held-out loss: on one batch that training never reads, and without any effect on the run."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from charts_kit import STEPS, make, rows
from task_kit import with_task

from normviz import RunConfig, train
from normviz.catalog import TASKS
from normviz.catalog.families import LANGUAGE
from normviz.charts import loss as loss_chart
from normviz.export.tables import tables
from normviz.model import texts
from normviz.model.data import make_task
from normviz.result import collect
from normviz.runs.lane import Lane
from normviz.runs.outcome import outcome
from normviz.training import loop
from normviz.training.events import Step
from normviz.training.loop import begin
from normviz.training.schedule import held_out_at

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=6)
SOME = [key for key in LANGUAGE if key != "prose"]
CHANGES = [
    {}, {"dropout": 0.2}, {"norm": "batchnorm"}, {"norm": "powernorm"}, {"norm": "tapernorm"},
    {"scheme": "prores"}, {"scheme": "value_residual"}, {"scheme": "hyper"}, {"scheme": "admin"},
    {"scheme": "ngpt"}, {"optimizer": "sgd", "momentum": 0.9, "clip": 0.1},
]  # fmt: skip
CASES = [*product(CHANGES, ["tape"]), *product(CHANGES[:2], ["eager"])]


def steps(config: RunConfig, engine: str = "tape") -> list[Step]:
    return [e for e in train(config, engine=engine) if isinstance(e, Step)]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "engine"), CASES, ids=str)
def test_it_changes_no_bit_of_the_run(
    change: dict[str, object], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TINY.replace(**change)
    monkeypatch.setattr(loop, "held_out_at", lambda _: ())
    without = steps(config, engine)
    monkeypatch.setattr(loop, "held_out_at", lambda c: tuple(range(c.steps)))
    measured = steps(config, engine)
    assert all(step.held_out is None for step in without)
    assert all(step.held_out is not None for step in measured)
    for a, b in zip(without, measured, strict=True):
        assert (a.loss, a.grad_norm) == (b.loss, b.grad_norm)
        assert a.layers is not None and b.layers is not None
        assert a.layers.tobytes() == b.layers.tobytes()


@pytest.mark.parametrize(("change", "engine"), CASES, ids=str)
def test_the_last_one_is_the_loss_of_the_trained_model(
    change: dict[str, object], engine: str
) -> None:
    config = TINY.replace(**change)
    begun = begin(config)
    last = [e for e in train(config, begun=begun, engine=engine) if isinstance(e, Step)][-1]
    model, task = begun
    batch = task.held_out_tensors(torch.device("cpu"))
    assert batch is not None
    with torch.no_grad():
        assert last.held_out == pytest.approx(model.eval().loss(*batch).item(), rel=1e-5)


@pytest.mark.parametrize("key", SOME)
def test_no_step_reads_its_batch_and_every_seed_has_the_same(key: str) -> None:
    config = with_task(TINY, key).replace(seq_len=16)
    task = make_task(config)
    found, other = task.held_out(), make_task(config.replace(data_seed=7)).held_out()
    assert found is not None and other is not None
    assert all(np.array_equal(a, b) for a, b in zip(found, other, strict=True))
    rows = {tuple(row) for step in range(50) for row in task.batch(step)[0].tolist()}
    assert not rows & {tuple(row) for row in found[0].tolist()}


def test_of_a_text_it_reads_the_last_tenth() -> None:
    config = with_task(TINY, "text")
    codes = texts.written(config).codes
    found = make_task(config).held_out()
    assert found is not None
    unread = codes[len(codes) - len(codes) // 10 :]
    room = len(unread) - config.seq_len
    starts = [i * room // config.batch for i in range(config.batch)]
    assert found[0].tolist() == [unread[i : i + config.seq_len].tolist() for i in starts]
    assert np.array_equal(found[0][:, 1:], found[1][:, :-1])


@pytest.mark.parametrize("engine", ["tape", "eager"])
def test_the_last_one_may_be_of_more_batches_and_changes_no_other_number(engine: str) -> None:
    config = with_task(TINY, "prose_split").replace(steps=41)
    model, task = begun = begin(config)
    more = config.replace(held_out_batches=4)
    assert more.key != config.key and "held_out_batches" not in config.canonical()
    usual = steps(config, engine)
    read = [e for e in train(more, begun=begun, engine=engine) if isinstance(e, Step)]
    assert [step.loss for step in read] == [step.loss for step in usual]
    earlier = [step.held_out for step in read[:-1]]
    assert earlier == [step.held_out for step in usual[:-1]] and len({*earlier}) == 3
    parts = task.last_held_out(4)
    assert [inputs.shape for inputs, _ in parts] == [(4, 8)] * 4
    wide = make_task(more.replace(batch=16)).held_out()
    assert wide is not None
    assert np.array_equal(wide[0], np.concatenate([inputs for inputs, _ in parts]))
    with torch.no_grad():
        loss = model.eval().loss(*map(torch.from_numpy, wide)).item()
    assert read[-1].held_out == pytest.approx(loss, rel=1e-5) != usual[-1].held_out


def test_what_is_read_as_a_whole_stays_whole() -> None:
    digits = make_task(RunConfig(family="mlp"))
    (whole,) = digits.last_held_out(3)
    usual = digits.held_out()
    assert usual is not None and whole[0] is not None and np.array_equal(whole[0], usual[0])
    assert make_task(TINY.replace(task="prose")).last_held_out(3) == []


def test_prose_has_none_and_says_so() -> None:
    assert make_task(TINY.replace(task="prose")).held_out() is None
    assert all(step.held_out is None for step in steps(TINY.replace(task="prose")))
    assert TASKS["prose"].held_out.startswith("none:")


@pytest.mark.parametrize("n", [0, 1, 19, 20, 21, 200, 401, 20_000])
def test_it_is_measured_rarely_and_after_the_last_step(n: int) -> None:
    at = held_out_at(RunConfig(steps=n))
    assert at[-1] == max(n, 1) - 1
    assert len(at) <= 21 and len(at) <= max(n, 1) / 20 + 1


def test_a_loss_that_is_not_finite_is_inf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normviz.training.tape.engine.Tape.evaluate", lambda *_: math.nan)
    assert steps(TINY)[-1].held_out == math.inf


def test_charts_tables_json_and_the_outcome_have_it() -> None:
    it = collect(train(TINY.replace(steps=40)))
    assert it.held_out is not None
    exported = tables([Lane("A", it.config, (it,))])
    column = exported["steps"]["held_out_loss"].to_pylist()
    assert [i for i, x in enumerate(column) if x is not None] == [19, 39]
    assert exported["runs"]["held_out_loss"].to_pylist() == [it.held_out]
    said = it.as_json(())
    assert said["held_out_loss"] == it.held_out == said["held_out_losses"][39]
    assert f"; held-out {it.held_out:.2f}." in outcome({"A": [it]}).lines[0]
    held_out = np.full(STEPS, np.nan)
    held_out[[19, 39]] = 2.0, 1.7
    lane = make(held_out=held_out)
    drawn = loss_chart.fixed([make(), lane], (1.0, 5.0))["held_out"]
    assert rows(drawn) == [
        {"step": 19, "loss": 2.0, "lane": 1},
        {"step": 39, "loss": 1.7, "lane": 1},
    ]
    assert "Held-out loss: A pre 1.70." in loss_chart.finding([lane])


def test_nothing_is_said_of_a_run_without_it() -> None:
    it = collect(train(TINY.replace(task="prose")))
    it = replace(it, config=it.config)
    assert it.held_out is None and "held-out" not in outcome({"A": [it]}).lines[0]
    assert "Held-out" not in loss_chart.finding([make()])
