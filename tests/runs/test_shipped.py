"""Finished runs that ship with the product, and their way into a store."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest
from crossing_kit import case

from normviz import RunConfig
from normviz.config import ENGINE
from normviz.home import shipped as shipped_folder
from normviz.lessons.presets import PRESETS, QUICK, QUICK_INITS, quick
from normviz.runs import Recording, archive, collect, shipped
from normviz.runs.store import Store, pictures
from normviz.training.events import Diverged, Finished, Started, Step
from normviz.training.loop import train

SHIPPED = sorted((shipped_folder("assets") / "runs").glob("*.npz"))


@pytest.fixture(scope="module")
def shipped_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with the runs that ship, for tests that only read it."""
    store = Store(tmp_path_factory.mktemp("shipped"))
    shipped.adopt(store)
    return store


def test_the_hero_is_finished_on_opening(shipped_store: Store) -> None:
    for config in PRESETS["hero"].lanes():
        run = shipped_store.latest(config.key)
        assert run is not None
        assert (run.status, run.origin, run.config) == ("finished", "shipped", config)
        steps = shipped_store.steps(run)
        assert steps.step.tolist() == list(range(config.steps))
        assert steps.layer_steps[[0, -1]].tolist() == [0, config.steps - 1]
        assert np.isfinite(steps.loss).all()


def test_the_picture_of_the_hero_is_there_on_opening(shipped_store: Store) -> None:
    runs = [shipped_store.latest(config.key) for config in PRESETS["hero"].lanes()]
    assert pictures.of(shipped_store, [run.id for run in runs if run]) is not None
    assert pictures.waiting(shipped_store) is None


def test_every_quick_placement_of_the_hero_is_finished_on_opening(shipped_store: Store) -> None:
    for config in quick():
        with case(config.scheme, config.init):
            run = shipped_store.latest(config.key)
            assert run is not None and run.config == config
            assert (run.is_done, run.origin, run.is_coarse) == (True, "shipped", False)


def test_the_quick_placements_are_the_hero_with_both_initialisations() -> None:
    hero, _ = PRESETS["hero"].lanes()
    assert [(one.scheme, one.init) for one in quick()] == [
        (key, init) for init in QUICK_INITS for key in QUICK
    ]
    assert all(one.replace(scheme=hero.scheme, init=hero.init) == hero for one in quick())


def test_a_shipped_run_keeps_its_name() -> None:
    """Of the config as the file has it, whatever settings there are since."""
    for path in SHIPPED:
        with case(path.stem):
            with np.load(path) as data:
                written = json.loads(str(data["about"]))["config"]
            text = json.dumps(written, sort_keys=True, separators=(",", ":"))
            config = RunConfig(**written)
            assert config.canonical() == text
            assert config.key == f"e{ENGINE}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def test_neither_adopting_twice_nor_stopped_attempts_ship_a_run_again(store: Store) -> None:
    """And the shipped one is still what its settings show."""
    shipped.adopt(store)
    hero, _ = PRESETS["hero"].lanes()
    for _ in range(60):
        store.end(store.enqueue(hero), "stopped")
    shipped.adopt(store)
    count = store.db.connection.execute(
        "SELECT COUNT(*) FROM runs WHERE origin = 'shipped'"
    ).fetchone()[0]
    assert count == len(SHIPPED)
    run = store.latest(hero.key)
    assert run is not None and (run.status, run.origin) == ("finished", "shipped")


@pytest.mark.parametrize(
    ("asks", "adopt"),
    [("latest", lambda store, it: store.adopt(it)), ("done_keys", lambda store, it: store.adopt_cells([it]))],
    ids=["run", "cell"],
)  # fmt: skip
def test_servers_that_adopt_at_once_have_one_run_of_each(
    tmp_path: Path, asks: str, adopt: Callable[[Store, Recording], None]
) -> None:
    config = RunConfig(depth=3)
    ended = collect([Started(config, "cpu", 1, 9, 3.3, None, None), Finished(0)])
    one, other = Store(tmp_path), Store(tmp_path)
    found = getattr(one, asks)
    with ThreadPoolExecutor(1) as pool:

        def late(*words: str) -> object:
            """The other server begins once this one has seen that the run is missing."""
            answer = found(*words)
            wait([pool.submit(adopt, other, ended)], 0.3)
            return answer

        setattr(one, asks, late)
        adopt(one, ended)
    assert len(list(other.results(config.key))) == 1


@pytest.mark.parametrize("bad", [None, Diverged(1, None, "loss")], ids=["finished", "diverged"])
def test_a_result_is_adopted_as_it_was(store: Store, bad: Diverged | None) -> None:
    config = RunConfig(depth=3)
    steps = [Step(0, 3.5, 1e-3, 0.7, None), Step(1, math.inf, 1e-3, math.nan, None)]
    started = Started(config, "cpu", 1, 1234, 3.3, 1.1, None)
    store.adopt(collect([started, *steps, *([bad] if bad else []), Finished(len(steps))]))
    run = store.latest(config.key)
    assert run is not None
    assert run.status == ("diverged" if bad else "finished")
    assert run.first_bad == bad
    assert len(store.steps(run).step) == len(steps)


@pytest.mark.parametrize("by", [-1, 1], ids=["older", "newer"])
def test_a_file_of_another_engine_gives_nothing_and_a_sentence(
    tmp_path: Path,
    tiny: RunConfig,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    by: int,
) -> None:
    run, cells = tmp_path / "run.npz", tmp_path / "cells.npz"
    archive.save(it := collect(train(tiny)), run)
    archive.save_cells([it], cells)
    monkeypatch.setattr(archive, "ENGINE", ENGINE + by)
    assert [*archive.load(run), *archive.load(cells), *archive.keys_of(cells)] == []
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3 and all(f"version {ENGINE} of the engine made it" in one for one in said)
