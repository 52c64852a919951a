"""Texts that people gave: kept once, by their hash, for the trainer alone; and trained on."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from task_kit import WORDS, with_task

from normviz import ConfigError, RunConfig, train
from normviz.home import VARIABLE
from normviz.model import texts
from normviz.model.characters import TextError
from normviz.model.data import make_task
from normviz.policy import NO_TEXTS, SHARED, Policy
from normviz.runs.store import Store
from normviz.runs.store.retention import link
from normviz.training.events import Started, Step

KEY = hashlib.sha256(WORDS.encode()).hexdigest()[:32]


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own, and where its texts lie."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path / "texts"


@pytest.mark.parametrize(
    "given",
    [
        WORDS,
        WORDS.encode(),
        "\ufeff" + WORDS,
        WORDS.replace("\n", "\r\n"),
        WORDS.encode("utf-8-sig"),
    ],
    ids=["text", "bytes", "marked", "windows", "marked bytes"],
)
def test_the_same_text_is_kept_once(kept: Path, given: str | bytes) -> None:
    assert texts.add(WORDS) == texts.add(given) == KEY
    assert [path.name for path in kept.iterdir()] == [f"{KEY}.txt"]
    assert (kept / f"{KEY}.txt").read_bytes() == WORDS.encode()


def test_nobody_else_on_the_machine_may_read_it(kept: Path) -> None:
    texts.add(WORDS)
    assert kept.stat().st_mode & 0o077 == 0
    assert (kept / f"{KEY}.txt").stat().st_mode & 0o077 == 0


def test_a_file_is_added_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_bytes(WORDS.replace("\n", "\r\n").encode())
    assert texts.add(tmp_path / "book.txt") == KEY


def test_a_file_that_cannot_be_used_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"^the file '.*nowhere.txt' can't be read: No such file"):
        texts.add(tmp_path / "nowhere.txt")
    with pytest.raises(TextError, match=r"^the file '.*' can't be read: Is a directory"):
        texts.add(tmp_path)
    (tmp_path / "huge").write_bytes(b"")
    os.truncate(tmp_path / "huge", 10**12)
    with pytest.raises(TextError, match=r"^the text has 1,000,000,000,000 bytes"):
        texts.add(tmp_path / "huge")


def test_a_text_too_short_for_the_sequences_is_not_kept(kept: Path) -> None:
    with pytest.raises(
        TextError, match=r"sequences of 32 need 330 or more: give a longer text, or"
    ):
        texts.add("too short for that\n" * 4, seq_len=32)
    assert not kept.exists()


def test_a_deleted_text_is_gone(kept: Path) -> None:
    texts.add(WORDS)
    assert texts.about(KEY).characters == len(WORDS)
    assert texts.delete(KEY)
    assert not list(kept.iterdir())
    assert not texts.delete(KEY)
    with pytest.raises(TextError, match=f"hash {KEY[:8]}…"):
        texts.about(KEY)  # although it was counted before


@pytest.mark.parametrize("name", ["../normviz", "", "x" * 32, KEY.upper(), f"{KEY}\n"])
def test_no_name_leads_elsewhere(name: str) -> None:
    for act in (texts.is_here, texts.delete, texts.about):
        with pytest.raises(TextError, match="is not the hash of a text"):
            act(name)


def test_of_too_many_the_one_used_longest_ago_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_TEXTS", 3)
    keys = [texts.add(f"{i}{WORDS}") for i in range(3)]
    for age, key in enumerate(keys):
        os.utime(texts._path(key), (age, age))
    texts.written(RunConfig(task="text", text=keys[0]))  # a run used it
    newest = texts.add(WORDS, needed=tuple)
    assert set(texts.listed()) == {newest, keys[0], keys[2]}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """As many texts as may be kept, the one used longest ago first."""
    monkeypatch.setattr(texts, "MAX_TEXTS", 5)
    keys = [texts.add(f"{i}{WORDS}") for i in range(5)]
    for age, key in enumerate(keys):
        os.utime(texts._path(key), (age, age))
    return keys


def readers(store: Store, keys: list[str]) -> None:
    """A run on each text: one waits, one trains, one is paused, one has a link, one ended."""
    runs = [
        store.enqueue(RunConfig(task="text", text=key, depth=2, steps=40, data_seed=i))
        for i, key in enumerate(keys)
    ]
    for run, status in zip(runs[1:3], ("running", "paused"), strict=True):
        store.db.connection.execute(
            "UPDATE runs SET status = ?, pid = ? WHERE id = ?", (status, os.getpid(), run)
        )
    for run in runs[3:]:
        store.end(run, "stopped")
    link(store, runs[3:4])


def test_a_text_that_an_open_or_linked_run_reads_stays(full: list[str], store: Store) -> None:
    *needed, free = full
    readers(store, full)
    assert store.needed_texts() == set(needed)
    newest = texts.add(f"new {WORDS}", needed=store.needed_texts)
    assert set(texts.listed()) == {*needed, newest}
    store.enqueue(RunConfig(task="text", text=newest))
    with pytest.raises(TextError, match=r"5 texts are kept here.*delete one with `normviz texts"):
        texts.add(f"newer {WORDS}", needed=store.needed_texts)
    assert set(texts.listed()) == {*needed, newest}
    assert texts.add(f"new {WORDS}", needed=store.needed_texts) == newest  # it is here already
    assert free not in texts.listed()


def test_where_nobody_says_what_is_needed_nothing_is_deleted(full: list[str]) -> None:
    with pytest.raises(TextError, match=r"delete one with `normviz texts --delete HASH`"):
        texts.add(f"new {WORDS}")
    assert set(texts.listed()) == set(full)


def test_the_counts_are_said() -> None:
    found = texts.about(texts.add(WORDS))
    assert (found.characters, found.distinct) == (len(WORDS), len(set(WORDS)))
    assert f"{len(WORDS):,} characters, {len(set(WORDS))} distinct, unigram ent" in found.sentence()
    assert "other" not in found.sentence()
    many = texts.about(texts.add("".join(chr(0x4E00 + i) for i in range(700))))
    assert "More than 512 distinct characters: the 189 rarest became one “other” symbol, 27.0%" in (
        many.sentence()
    )


# Trained on


def test_batches_are_pieces_of_the_text_but_of_its_last_tenth() -> None:
    config = with_task(RunConfig(seq_len=12, batch=256), "text")
    task, alphabet = make_task(config), sorted(set(WORDS))
    first = WORDS[: len(WORDS) - len(WORDS) // 10]
    reached = 0
    for step in range(20):
        inputs, targets = task.batch(step)
        for row, last in zip(inputs, targets[:, -1], strict=True):
            piece = "".join(alphabet[code] for code in (*row, last))
            assert piece in first
            reached = max(reached, first.rindex(piece) + 13)
    assert reached > 0.99 * len(first)
    assert task.text is not None
    assert task.text[:32] == config.text


def test_batches_are_the_same_wherever_the_text_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They depend on text, data seed and step alone."""
    config = with_task(RunConfig(), "text")
    here = make_task(config).batch(3)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "elsewhere"))
    assert texts.add(WORDS.encode("utf-8-sig")) == config.text
    there = make_task(config.replace(scheme="post", depth=2)).batch(3)
    assert all(np.array_equal(x, y) for x, y in zip(here, there, strict=True))


def test_a_small_model_learns_a_text(tiny: RunConfig) -> None:
    config = with_task(tiny, "text").replace(steps=150, lr=0.01)
    started, *events = train(config)
    assert isinstance(started, Started)
    assert started.chance == texts.about(config.text).entropy
    assert started.floor is None
    losses = [event.loss for event in events if isinstance(event, Step)]
    assert np.mean(losses[-15:]) < 0.9 * started.chance


def test_a_run_without_its_text_gets_a_sentence(tiny: RunConfig) -> None:
    config = with_task(tiny, "text")
    assert texts.obstacle(config) is texts.obstacle(tiny) is None
    texts.delete(config.text)
    sentence = (
        f"this run trains on a text (hash {config.text[:8]}…) that this server does not have: paste "
        "it, or give it with --text FILE, to run it again; stored results stay readable"
    )
    assert texts.obstacle(config) == sentence
    with pytest.raises(ConfigError) as caught:
        next(train(config))
    assert str(caught.value) == sentence


def test_a_run_whose_sequences_are_too_long_gets_a_sentence(tiny: RunConfig) -> None:
    config = tiny.replace(task="text", text=texts.add("a short text " * 10))
    assert texts.obstacle(config) is None
    longer = config.replace(seq_len=32)
    assert (texts.obstacle(longer) or "").startswith(
        "the text has 130 characters, and sequences of"
    )
    with pytest.raises(ConfigError, match="sequences of 32 need 330 or more"):
        next(train(longer))


def test_a_file_that_was_changed_is_not_taken_for_the_text(kept: Path) -> None:
    config = with_task(RunConfig(), "text")
    (kept / f"{config.text}.txt").write_text(WORDS.upper())
    with pytest.raises(TextError, match="does not have"):
        texts.written(config)


def test_a_text_costs_more_than_a_chain() -> None:
    from normviz.config import estimated_gib, estimated_seconds

    own = RunConfig(task="text", text=KEY)
    assert estimated_seconds(own) > estimated_seconds(RunConfig())
    assert estimated_gib(own) > estimated_gib(RunConfig())


def test_a_shared_server_trains_on_none_and_says_the_same_of_all(
    tiny: RunConfig,
) -> None:
    here = with_task(tiny, "text")
    away = here.replace(text="0" * 32)
    assert SHARED.may([tiny]) is None
    assert SHARED.may([here]) == SHARED.may([tiny, away]) == f"this run {NO_TEXTS}"
    assert Policy().may([here, away]) is None


def test_a_text_that_is_far_too_short_names_the_sequences_that_it_is_for() -> None:
    with pytest.raises(TextError, match=r"3 characters, and sequences of 32 need 330 or more"):
        texts.add(b"abc", 32)
