"""Runs in memory: what many look at is read once, within bounds, and is what the store has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from normviz import RunConfig, home
from normviz.catalog.probes import recorded_by
from normviz.charts import heatmap
from normviz.charts.palette import LaneStyle
from normviz.charts.scale import Domain
from normviz.lessons.presets import PRESETS
from normviz.runs import Recording, Run, Steps, archive, collect, shipped
from normviz.runs.frames import Frames
from normviz.runs.lane import Lane, lacking
from normviz.runs.names import with_names
from normviz.runs.store import Store
from normviz.training.loop import train


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("frames"))
    shipped.adopt(store)
    return store


def looked_at(store: Store, monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[Frames, list[int]]:
    """A reader that keeps so many bytes, and the runs of which it asked the store for all steps."""
    whole = list[int]()
    steps = store.steps

    def asked(run: Run, after: int = -1) -> Steps:
        whole.extend([run.id] if after == -1 else [])
        return steps(run, after=after)

    monkeypatch.setattr(store, "steps", asked)
    return Frames(store, most), whole


def some(store: Store) -> list[Run]:
    found = [run for number in range(1, 30) if (run := store.run(number)) and run.is_done]
    assert len(found) > 4
    return found


def test_runs_leave_memory_when_they_are_too_many(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = some(store)
    most = sum(store.steps(run).nbytes for run in runs[1:])
    frames, whole = looked_at(store, monkeypatch, most)
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
    for name in Steps.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(again, name), getattr(fresh, name))
    assert again.nbytes == sum(getattr(again, n).nbytes for n in Steps.__dataclass_fields__)


def test_one_run_is_kept_however_large_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = some(store)[0]
    frames, whole = looked_at(store, monkeypatch, 1)
    frames.steps(run)
    frames.steps(run)
    assert whole == [run.id]


def test_what_is_kept_of_a_run_that_grows_is_counted_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, steps = some(store), store.steps
    frames, whole = looked_at(store, monkeypatch, sum(steps(run).nbytes for run in runs[:2]))
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


def fewer(it: Recording, n: int = 10) -> Recording:
    """The run with its first probes alone."""
    steps = replace(it.steps, layers=it.steps.layers[:, :n])
    return replace(it, probes=it.probes[:n], steps=steps)


def test_a_run_has_no_values_of_what_it_did_not_record() -> None:
    """A lane without records, beside one that has them, and a sentence why."""
    hero = PRESETS["hero"].lanes()[0].replace(steps=3)
    whole = collect(train(hero))
    assert "stream_max" not in fewer(whole).probes
    old = fewer(whole)
    assert (old.lacks("stream_max"), old.lacks("stream_rms")) == (True, False)
    layers = old.layers("stream_max")
    assert layers.values.shape == (0, hero.depth + 1) and len(layers.step) == 0
    assert len(old.losses) == hero.steps
    assert len(whole.layers("stream_max").values) == 3 and whole.probes == recorded_by("one")
    lanes = [Lane(name, hero, (it,)) for name, it in (("A  Pre-LN", old), ("B  Pre-LN", whole))]
    assert lacking(lanes, "stream_max") == [
        "A Pre-LN has no values of it: its run did not record it; train its settings again."
    ]


def test_a_placement_of_one_stream_has_no_second_one() -> None:
    configs = [RunConfig(depth=1, steps=2, scheme=key) for key in ("pre", "residual_dual")]
    lanes = with_names(
        [Lane(name, c, (collect(train(c)),)) for name, c in zip("AB", configs, strict=True)]
    )
    assert [lane.recording.lacks("summed_rms") for lane in lanes] == [True, False]
    assert lacking(lanes, "summed_rms") == [
        "A Pre-LN has no values of it: its placement does not have two streams."
    ]


def test_files_keep_the_probes_of_each_run(tmp_path: Path) -> None:
    """Cells of fewer probes, of one stream and of two, in one file."""
    small = RunConfig(depth=1, steps=4)
    new = [collect(train(small.replace(scheme=key))) for key in ("pre", "siamese")]
    cells = [fewer(new[0]), *new]
    archive.save_cells(cells, tmp_path / "cells.npz")
    for mine, theirs in zip(cells, archive.load(tmp_path / "cells.npz"), strict=True):
        assert theirs.probes == mine.probes
        for probe in mine.probes:
            last = mine.values(probe)[-1].astype(np.float32)
            assert np.array_equal(theirs.values(probe)[-1], last, equal_nan=True)
    for mine in cells:
        archive.save(mine, tmp_path / "one.npz")
        (theirs,) = archive.load(tmp_path / "one.npz")
        assert theirs.probes == mine.probes
        assert np.array_equal(theirs.steps.layers, mine.steps.layers, equal_nan=True)


def test_the_share_of_clipped_steps() -> None:
    config = RunConfig(depth=1, steps=8)
    norms = collect(train(config)).steps.grad_norm
    assert collect(train(config)).clipped is None
    assert collect(train(config.replace(steps=0, clip=1.0))).clipped is None
    assert collect(train(config.replace(clip=1e-6))).clipped == 1.0
    assert collect(train(config.replace(clip=float(2 * norms.max())))).clipped == 0.0


def test_what_float32_rounds_away_is_drawn_as_zero() -> None:
    """In the hero's Post-LN the query and key gradient of the last block sinks to rounding."""
    it = next(archive.load(home.shipped("assets") / "runs" / "hero-2-post.npz"))
    drawn, raw = it.layers("grad_qk").values, it.values("grad_qk")
    lost = raw < 2.0**-24 * it.values("grad_block")
    assert lost[:, -1].any() and not lost[0].any()
    assert (drawn[lost] == 0).all()
    assert np.array_equal(drawn[~lost], raw[~lost], equal_nan=True)
    assert np.array_equal(it.layers("grad_w2").values, it.values("grad_w2"), equal_nan=True)
    heat = heatmap.spec(LaneStyle("#000000"), "B", "grad_qk", 12, 200, Domain(1e-9, 1, zeros=True))
    assert "lost in rounding" in heat["title"]["subtitle"]
