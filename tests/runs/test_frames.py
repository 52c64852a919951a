"""Runs in memory: what many look at is read once, within bounds, and is what the store has."""

from __future__ import annotations

import numpy as np
import pytest
from hosted_kit import turn_on

from normviz.runs import Steps, shipped
from normviz.runs import frames as module
from normviz.runs.frames import Frames
from normviz.runs.store import Run, Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("frames"))
    shipped.adopt(store)
    return store


def looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[Frames, list[int]]:
    """A reader, and the runs of which it asked the store for all steps."""
    whole = list[int]()
    steps = store.steps

    def asked(run: Run, after: int = -1) -> Steps:
        whole.extend([run.id] if after == -1 else [])
        return steps(run, after=after)

    monkeypatch.setattr(store, "steps", asked)
    return Frames(store), whole


def some(store: Store) -> list[Run]:
    found = [run for number in range(1, 30) if (run := store.run(number)) and run.is_done]
    assert len(found) > 4
    return found


@pytest.mark.parametrize(
    ("shared", "bound"), [(False, "KEPT_BYTES"), (True, "KEPT_HOSTED")], ids=["own", "shared"]
)
def test_runs_leave_memory_when_they_are_too_many(
    store: Store, monkeypatch: pytest.MonkeyPatch, shared: bool, bound: str
) -> None:
    runs = some(store)
    if shared:
        turn_on(monkeypatch)
    most = sum(store.steps(run).nbytes for run in runs[1:])
    monkeypatch.setattr(module, bound, most)
    frames, whole = looked_at(store, monkeypatch)
    for _ in range(3):
        for run in runs[1:]:
            frames.steps(run)
    assert whole == [run.id for run in runs[1:]]  # all have room: each is read once
    frames.steps(runs[0])
    frames.steps(runs[-1])
    assert whole == [run.id for run in runs[1:]] + [runs[0].id]
    again = frames.steps(runs[1])  # it had to leave, and comes back as it was
    assert whole[-1] == runs[1].id
    fresh = store.steps(runs[1])
    assert all(
        np.array_equal(getattr(again, name), getattr(fresh, name), equal_nan=True)
        for name in Steps.__dataclass_fields__
    )
    assert again.nbytes == sum(getattr(again, n).nbytes for n in Steps.__dataclass_fields__)


def test_one_run_is_kept_however_large_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 1)
    run = some(store)[0]
    frames, whole = looked_at(store, monkeypatch)
    frames.steps(run)
    frames.steps(run)
    assert whole == [run.id]


def test_what_is_kept_of_a_run_that_grows_is_counted_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, steps = some(store), store.steps
    monkeypatch.setattr(module, "KEPT_BYTES", sum(steps(run).nbytes for run in runs[:2]))
    frames, whole = looked_at(store, monkeypatch)
    frames.steps(runs[0])
    full = store.steps
    for upto in range(10, len(steps(runs[1]).step) + 1, 10):  # it is trained while it is looked at

        def so_far(run: Run, after: int = -1, upto: int = upto) -> Steps:
            it = full(run, after=after)
            new, layers = it.step < upto, it.layer_steps < upto
            return Steps(it.step[new], it.loss[new], it.lr[new], it.grad_norm[new],
                         it.layer_steps[layers], it.layers[layers])  # fmt: skip

        monkeypatch.setattr(store, "steps", so_far)
        frames.steps(runs[1])
    assert len(frames.steps(runs[1]).step) == len(steps(runs[1]).step)
    frames.steps(runs[0])
    assert whole == [runs[0].id, runs[1].id]  # both have room to the end
