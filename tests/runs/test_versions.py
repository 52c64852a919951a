"""Results say which version of the engine made them, and whether it ran in C++; older ones open as before."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from shelf_kit import earlier

from normviz import RunConfig, train
from normviz.config import ENGINE, keys_for, version_of
from normviz.duel.names import settings
from normviz.duel.outcome import outcome
from normviz.duel.presets import PRESETS
from normviz.export import ExportLane, preview, read_configs, replay, script, write_configs
from normviz.maps.drive import missing, stored
from normviz.maps.grid import make
from normviz.maps.points import shipped_point
from normviz.result import collect
from normviz.runs import Recording, archive, shipped
from normviz.runs.listing import misfit
from normviz.runs.store import Store
from normviz.runs.versions import computed_by

TINY = RunConfig(depth=1, width=8, heads=2, seq_len=4, batch=2, steps=3)
NOTE = (
    "by version 1 of the engine. Training again uses version 2, which draws other numbers from the "
    "same distributions."
)


def made(config: RunConfig, version: int) -> Recording:
    return replace(collect(train(config)), version=version)


def both(store: Store, *versions: int, origin: str = "here") -> list[int]:
    return store.keep_all([made(TINY, version) for version in versions], origin)  # pyright: ignore


def test_a_key_names_its_engine_and_the_older_ones_that_may_stand_for_it() -> None:
    assert (version_of(TINY.key), version_of(TINY.key_by(1)), version_of("no key")) == (
        ENGINE,
        1,
        0,
    )
    assert keys_for("e3-ab") == ("e3-ab", "e2-ab", "e1-ab")
    assert keys_for("no key") == ("no key",)


def test_a_hero_of_an_earlier_release_opens_and_is_engine_1_s(store: Store) -> None:
    earlier(store)
    runs = store.together(PRESETS["hero"].lanes())
    assert [run and run.version for run in runs] == [1, 1]
    recordings = {str(i): [store.recording(run)] for i, run in enumerate(runs) if run}
    assert f"Made {NOTE}" in outcome(recordings).notes
    assert all(misfit(run) is None for run in runs if run)


def test_shipped_runs_are_adopted_once_and_are_of_this_engine(store: Store) -> None:
    shipped.adopt(store)
    shipped.adopt(store)
    runs = store.together(PRESETS["hero"].lanes())
    assert [run and run.version for run in runs] == [ENGINE] * 2
    assert store.db.connection.execute(
        "SELECT COUNT(*) FROM runs GROUP BY key HAVING COUNT(*) > 1"
    ).fetchall() == []  # fmt: skip


def test_an_old_store_opens_and_a_new_run_has_its_own_key(tmp_path: Path) -> None:
    """A store that an earlier release wrote, with its runs of engine 1."""
    db = sqlite3.connect(tmp_path / "normviz.sqlite")
    db.executescript((Path(__file__).parent / "store_1.sql").read_text())
    db.close()
    store = Store(tmp_path)
    old = store.run(1)
    assert old is not None
    assert (old.version, old.status, misfit(old)) == (1, "finished", None)
    before = store.latest(old.config.key)
    assert before is not None
    assert (before.version, before.is_done) == (1, True)
    (new,) = store.keep_all([collect(train(old.config))], "here")
    latest = store.latest(old.config.key)
    assert latest is not None
    assert (latest.id, latest.key) == (new, old.config.key_by(ENGINE))
    exact = store.latest(old.key)  # by its own key it is still there
    assert exact is not None
    assert (exact.id, exact.key) == (before.id, old.key)


def test_a_run_queued_under_an_older_engine_is_named_by_the_one_that_trains_it(
    store: Store,
) -> None:
    run = store.enqueue(TINY)
    store.db.connection.execute("UPDATE runs SET key = ?", (TINY.key_by(1),))
    started = collect(train(TINY)).started
    assert started is not None
    store.started(run, started, 1, False)
    assert (now := store.run(run)) is not None
    assert now.key == TINY.key


def test_the_newest_engine_s_run_comes_first_among_equals(store: Store) -> None:
    older, newer = both(store, 1, ENGINE)
    assert [run.id for run in store.results(TINY.key)] == [newer, older]
    assert [run.id for run in store.results(TINY.key_by(1))] == [older]
    assert store.latest(TINY.key_by(1), older=False) is not None
    both(store, 1)  # later, and still after the newer engine's
    assert (latest := store.latest(TINY.key)) is not None
    assert latest.id == newer


def test_lanes_are_of_one_engine_where_the_store_has_them(store: Store) -> None:
    other = TINY.replace(scheme="post")
    old = store.keep_all([made(TINY, 1), made(other, 1)], "shipped")
    pair = (TINY, other)
    (new,) = store.keep_all([made(TINY, ENGINE)], "here")
    assert [run and run.id for run in store.together(pair)] == old
    (both_new,) = store.keep_all([made(other, ENGINE)], "here")
    assert [run and run.id for run in store.together(pair)] == [new, both_new]
    third = TINY.replace(scheme="peri")
    store.keep_all([made(third, 1)], "shipped")
    assert [run and run.version for run in store.together((*pair, third))] == [1, 1, 1]


def test_lanes_of_two_engines_are_not_compared() -> None:
    lanes = {"A": [made(TINY, 1)], "B": [made(TINY.replace(scheme="post"), ENGINE)]}
    found = outcome(lanes)
    assert found.comparisons == (
        "B is not compared with A: version 1 of the engine trained A and version 2 B, so they began "
        "from other numbers: train both again.",
    )
    assert f"1 of these 2 runs were made {NOTE}" in found.notes


def test_files_keep_the_engine(tmp_path: Path) -> None:
    old, path = made(TINY, 1), tmp_path / "a.npz"
    archive.save(old, path)
    (one,) = archive.load(path)
    archive.save_cells([old, made(TINY.replace(lr=0.1), ENGINE)], path)
    cells = list(archive.load(path))
    assert [it.version for it in (one, *cells)] == [1, 1, ENGINE]
    assert archive.keys_of(path) == {TINY.key, TINY.replace(lr=0.1).key}
    assert [it.key for it in archive.load(path, {TINY.key_by(1)})] == [cells[1].key]


def test_exports_say_the_engine() -> None:
    text = write_configs([ExportLane("A", TINY, made(TINY, 1))])
    assert f'"run": "{TINY.key_by(1)}"' in text
    assert (
        "come from version 1 of the engine and this is version 2" in read_configs(text).notices[0]
    )
    assert "torch.Generator().manual_seed" in script(ExportLane("A", TINY, made(TINY, 1)))
    assert "torch.Generator().manual_seed" not in script(ExportLane("A", TINY))


@pytest.mark.parametrize("version", [1, ENGINE])
def test_a_map_s_cell_may_be_older_and_a_repeated_claim_s_may_not(
    store: Store, version: int
) -> None:
    both(store, version, origin="sweep")
    assert missing(store, make(TINY, {}), early=True) == []
    found = stored(store, TINY.key, early=True, shipped=False)
    assert (found is None) == (version == 1)


# Which engine: in C++, or PyTorch's own operations.

IN_CPP, BY_TORCH = "Trained in NormViz's engine in C++.", "Trained with PyTorch's own operations."
MIXED = (
    "1 of these 3 {} trained with PyTorch's own operations, the others in NormViz's engine in C++."
)


def by(engine: str, config: RunConfig = TINY) -> Recording:
    it = made(config, ENGINE)
    assert it.started is not None
    return replace(it, started=replace(it.started, engine=engine))


@pytest.mark.parametrize(
    ("engines", "sentence"),
    [
        ([], ""),
        (["tape", "tape"], IN_CPP),
        (["eager", "", "of a later release"], BY_TORCH),
        (["tape", "", "tape"], MIXED.format("cells")),
        (
            ["eager", "tape", ""],
            "2 of these 3 cells trained with PyTorch's own operations, the other in NormViz's engine in "
            "C++.",
        ),
    ],
)
def test_a_sentence_says_which_engines_trained(engines: list[str], sentence: str) -> None:
    assert computed_by(engines, "cells") == sentence


@pytest.mark.parametrize("engine", ["tape", "eager"])
def test_a_map_s_cell_knows_its_engine(engine: str) -> None:
    (cell,) = make(TINY, {}).cells
    assert shipped_point(cell, by(engine)).engine == engine


def exported() -> list[ExportLane]:
    """Two lanes, one of them with two seeds, and a lane that was not trained."""
    seeds = [
        ExportLane("A", it.config, it) for it in (by("tape"), by("tape", TINY.replace(init_seed=1)))
    ]
    post = TINY.replace(scheme="post")
    return [replace(seeds[0], repeats=(seeds[1],)), ExportLane("B", post, by("eager", post))]


def test_saved_charts_of_a_replay_say_the_engine_of_every_seed() -> None:
    lanes = exported()
    (line,) = [line for line in replay(lanes).splitlines() if line.strip().startswith("name: ")]
    caption = json.loads(line.partition("caption: ")[2].removesuffix("});").strip())
    shared = settings([lane.config for lane in lanes])
    assert caption == ["Pre-LN against Post-LN", shared, MIXED.format("runs")]


def test_the_picture_of_a_link_says_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    cards: list[str] = []

    def drawn(asked: dict, card: str) -> tuple[dict[str, str], bytes]:
        cards.append(card)
        return dict.fromkeys(asked, ""), b""

    monkeypatch.setattr(preview, "draw_named", drawn)
    preview.draw(exported()[1:], "grad_block")
    assert "Trained with PyTorch&#x27;s own operations." in cards[0]
