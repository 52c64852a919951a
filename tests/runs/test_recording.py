"""A run's recording: the same from its events, from a store, and from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from backend_kit import SHORT
from crossing_kit import case

from normviz import RunConfig, train
from normviz.home import shipped
from normviz.result import collect as result
from normviz.runs import Recording, RecordingBuilder, Steps, archive, collect, empty
from normviz.runs.store import Store
from normviz.training.events import Diverged, Finished, Started, Step
from normviz.training.loop import Knobs

LOST = SHORT.replace(scheme="none", optimizer="sgd", lr=10.0, momentum=0.99)
ARRAYS = ("step", "loss", "lr", "grad_norm", "layer_steps", "layers", "held_out", "logit_rms")
FILES = [
    *sorted((shipped("assets") / "runs").glob("*.npz"))[::4],
    shipped("assets") / "maps" / "init.npz",
]


def assert_same(one: Recording, other: Recording) -> None:
    """But for the seconds, which a store takes from its clock, and the sign of a NaN, which it drops."""
    for name in (
        "config",
        "started",
        "status",
        "first_bad",
        "message",
        "probes",
        "verdict",
        "writings",
    ):
        assert getattr(one, name) == getattr(other, name), name
    for name in ARRAYS:
        mine, theirs = getattr(one.steps, name), getattr(other.steps, name)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), name
        assert np.array_equal(mine, theirs, equal_nan=True), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "config", [SHORT, LOST, SHORT.replace(steps=0)], ids=("trained", "lost", "begun")
)
def test_events_a_store_and_a_file_give_one_recording(
    config: RunConfig, store: Store, tmp_path: Path
) -> None:
    it = collect(train(config))
    (number,) = store.keep_all([it], "here")
    run = store.run(number)
    assert run is not None
    assert_same(store.recording(run), it)
    archive.save(it, tmp_path / "run.npz")
    (loaded,) = archive.load(tmp_path / "run.npz")
    assert_same(loaded, it)
    assert_same(result(train(config)), it)


def test_a_shipped_file_is_written_again_as_it_was(tmp_path: Path) -> None:
    again = tmp_path / "again.npz"
    for path in FILES:
        found = list(archive.load(path))
        if path.parent.name == "runs":
            archive.save(found[0], again)
        else:
            archive.save_cells(found, again)
        with case(path.stem), np.load(path) as old, np.load(again) as new:
            assert old.files == new.files
            for name in old.files:
                assert (old[name].dtype, old[name].shape) == (new[name].dtype, new[name].shape)
                assert old[name].tobytes() == new[name].tobytes(), name


def test_steps_that_came_later_follow_the_earlier_ones() -> None:
    steps = collect(train(SHORT)).steps
    events = list(steps)
    joined = Steps.of(events[7:], SHORT.depth).after(Steps.of(events[:7], SHORT.depth))
    for name in ARRAYS:
        assert getattr(joined, name).tobytes() == getattr(steps, name).tobytes()


def test_a_run_that_is_left_counts_as_stopped() -> None:
    builder = RecordingBuilder()
    with pytest.raises(ValueError, match="has not started"):
        builder.recording()
    for event in builder.follow(train(SHORT)):
        if isinstance(event, Step) and event.step == 4:
            break
    it = builder.recording()
    assert (it.status, len(it.steps)) == ("stopped", 5)
    assert it.verdict.sentence == "stopped after 5 steps"
    assert it.seconds > 0


def test_a_run_has_diverged_as_soon_as_it_says_so() -> None:
    started = Started(SHORT, "cpu", 1, 9, 3.3, None, None)
    said = [started, Step(0, float("nan"), 1e-3, 1.0, None), Diverged(0, None, "loss")]
    for events in (said, [*said, Finished(1)]):
        it = collect(events)
        assert (it.status, it.verdict.kind, it.verdict.step) == ("diverged", "diverged", 0)


def test_the_settings_are_those_that_the_run_ended_with() -> None:
    knobs, builder = Knobs(), RecordingBuilder()
    for event in builder.follow(train(SHORT, knobs)):
        if isinstance(event, Step) and event.step == 9:
            knobs.lr = 0.01
    it = builder.recording()
    assert it.config.lr_edits == ((10, 0.01),)
    assert it.started is not None and it.started.config == SHORT


def test_a_store_keeps_no_run_that_never_started(store: Store) -> None:
    with pytest.raises(ValueError, match="has not started"):
        store.keep_all([empty(SHORT, "failed", "no room")], "sweep")
    assert store.latest(SHORT.key) is None


def test_without_layers_the_rest_of_a_recording_is_the_same(store: Store) -> None:
    (number,) = store.keep_all([collect(train(SHORT))], "here")
    run = store.run(number)
    assert run is not None
    whole, bare = store.recording(run), store.recording(run, layers=False)
    assert bare.losses.tobytes() == whole.losses.tobytes()
    assert bare.verdict == whole.verdict
    assert (len(whole.steps.layer_steps), len(bare.steps.layer_steps)) == (SHORT.steps, 0)
