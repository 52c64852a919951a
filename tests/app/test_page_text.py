"""The page with a visitor's own text: giving, using, missing and deleting one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from crossing_kit import case
from page_kit import Open, address, checked, chips, copied, duel, runs, settings_open, words_of
from streamlit.testing.v1 import AppTest
from task_kit import WORDS

from normviz import RunConfig, train
from normviz.links import encode
from normviz.model import texts
from normviz.player import ChartOptions, Sent, message
from normviz.runs.frames import Frames
from normviz.runs.lane import Lane
from normviz.runs.store import Store
from normviz.training.events import Started, Step

SECRET = "nobody else may read that <script>alert('x')</script> $x^2$ :red[no] **no**\n"
TEXT = SECRET + WORDS


def wanting(page: Open) -> AppTest:
    """The page once the task is chosen."""
    at = page()
    return checked(at.selectbox(key="knob_task").set_value("text").run())


def give(at: AppTest, text: str) -> AppTest:
    (area,) = at.text_area
    area.set_value(text)
    return checked(press(at, "use_text").run())


def press(at: AppTest, key: str):
    return next(button for button in at.button if button.key == key).click()


def words(at: AppTest) -> str:
    """Everything that the page says, the open text of its link too, and the address."""
    at.session_state["link_text"] = True
    checked(at.run())
    assert [block for block in at.code if block.value.startswith("normviz run")]
    kinds = (at.markdown, at.caption, at.info, at.warning, at.error, at.code, at.html)
    said = [element.value for kind in kinds for element in kind]
    return "\n".join([*map(str, said), str(address(at)), *(str(box.value) for box in at.text_area)])


def stored(folder: Path, config: RunConfig) -> int:
    """The number of a finished run."""
    store = Store(folder)
    run = store.enqueue(config)
    for event in train(config):
        if isinstance(event, Started):
            store.started(run, event, os.getpid(), paused=False)
        elif isinstance(event, Step):
            store.append(run, [event])
    store.end(run, "finished")
    return run


@pytest.mark.slow
def test_choosing_the_task_asks_for_a_text_and_changes_nothing_yet(page: Open) -> None:
    at = wanting(page)
    assert duel(at).lanes == (RunConfig(), RunConfig(scheme="post"))
    assert any("Until then the lanes keep their present task" in info.value for info in at.info)
    said = words(at)
    for part in ("Up to 1,000,000 bytes", "330 characters or more for sequences of 32",
                 "do not give a text that must stay secret"):  # fmt: skip
        assert part in said
    checked(at.selectbox(key="knob_task").set_value("copy").run())
    assert [lane.task for lane in duel(at).lanes] == ["copy", "copy"]
    assert not at.text_area


def test_a_pasted_text_is_kept_and_never_shown_again(page: Open, folder: Path) -> None:
    at = give(wanting(page), TEXT)
    key = texts.add(TEXT)
    assert {(lane.task, lane.text) for lane in duel(at).lanes} == {("text", key)}
    assert copied(at)["text"] == key
    said = words(at)
    assert f"Text {key[:8]}…: {len(TEXT):,} characters" in said
    assert "nobody else" not in said and "alert(" not in said
    checked(at.button(key="train").click().run())
    queued = [Store(folder).run(run) for run in duel(at).runs]
    assert [run.config.text for run in queued if run] == [key, key]


BAD = (
    ("", None, "Nothing was given: paste a text, or choose a file"),
    ("abc" * 20, None, "The text has 60 characters, and sequences of 32 need 330 or more: give"),
    ("a" * 999, None, "The text repeats one character, 'a', and there is nothing to learn"),
    ("ab" * 500_001, None, "The text has 1,000,002 bytes in UTF-8, allowed are up to 1,000,000"),
    ("a\0" * 500, None, "The text holds a zero byte at character 1, so it is not text"),
    (TEXT, TEXT.encode(), "A text was pasted and a file uploaded: clear one of them."),
    ("", b"\x89PNG" * 99, "The file is not text in UTF-8: byte 0 is 0x89. If it is text, save"),
)


@pytest.mark.slow
def test_what_cannot_be_used_is_said_and_changes_nothing(page: Open) -> None:
    """And it can be mended, here by a file that is text."""
    at = wanting(page)
    for text, file, sentence in BAD:
        with case(sentence):
            if file is not None:
                at.file_uploader[0].upload("it", file, "text/plain")
            give(at, text)
            (error,) = at.error
            assert words_of(error).startswith(sentence)
            assert duel(at).lanes == (RunConfig(), RunConfig(scheme="post"))
            assert not texts.listed()
    file = TEXT.replace("\n", "\r\n").encode("utf-8-sig")
    at.file_uploader[0].upload("book.txt", file, "text/plain")
    give(at, "")
    assert not at.error
    assert {lane.text for lane in duel(at).lanes} == {texts.add(TEXT)}


@pytest.mark.slow
def test_a_text_that_waits_to_be_trained_on_is_not_deleted_for_another(
    page: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "MAX_TEXTS", 2)
    at = give(wanting(page), TEXT)
    (first,) = texts.listed()
    checked(at.button(key="train").click().run())
    for n in range(3):
        assert not at.error
        give(at, f"{n} {TEXT}")
        assert first in texts.listed() and len(texts.listed()) == 2
    Store(folder).enqueue(duel(at).lanes[0])
    give(at, f"3 {TEXT}")
    assert words_of(at.error[0]).startswith(
        "2 texts are kept here, as many as there may be, and each"
    )


def test_one_lane_alone_may_train_on_it(page: Open) -> None:
    at = settings_open(page(), 1)
    key = texts.add(TEXT)
    checked(at.selectbox(key="lane1_own").set_value("text").run())
    checked(at.text_input(key="lane1_value").set_value(key).run())
    assert [(lane.task, lane.text) for lane in duel(at).lanes] == [("markov", ""), ("text", key)]
    assert any(f"text: none → {key[:8]}…" in caption.value for caption in at.caption)
    checked(at.selectbox(key="lane1_own").set_value("task").run())
    checked(at.text_input(key="lane1_value").set_value("markov").run())
    assert [lane.text for lane in duel(at).lanes] == ["", ""]


@pytest.mark.slow
def test_sequences_too_long_for_the_text_are_said_and_not_queued(page: Open) -> None:
    at = give(wanting(page), "just long enough " * 20)
    before = duel(at).runs
    at.session_state["more"], at.session_state["more_find"] = True, "sequence length"
    checked(at.run())
    checked(at.text_input(key="knob_seq_len").set_value("128").run())
    assert "Too short for sequences of 128, which need 1,290 characters" in words_of(at.warning[0])
    checked(at.button(key="train").click().run())
    assert duel(at).runs == before
    assert "sequences of 128 need 1,290 or more" in words_of(at.error[0])


def test_a_link_without_its_text_shows_the_curves_and_says_what_is_missing(
    page: Open, folder: Path
) -> None:
    config = RunConfig(depth=2, steps=40, task="text", text=texts.add(TEXT))
    run = stored(folder, config)
    texts.delete(config.text)
    at = page(encode([config]))
    sentence = (
        f"This link trains on a text (hash {config.text[:8]}…) that this server does not have: paste "
        "it to run it again; stored results stay readable."
    )
    assert [words_of(info) for info in at.info] == [sentence]
    assert runs(at) == [run]
    assert "not trained" not in chips(at)[0]
    checked(at.button(key="train").click().run())
    assert Store(folder).queued() == []
    assert "does not have" in words_of(at.error[0]).lower()
    give(at, TEXT)
    assert duel(at).lanes == (config,)  # its curves are still the ones shown
    assert not at.info and not at.warning and not at.error
    checked(at.button(key="train").click().run())
    assert len(Store(folder).queued()) == 1


def test_who_came_by_a_link_sees_counts_and_curves_but_no_text(page: Open, folder: Path) -> None:
    config = RunConfig(depth=2, steps=40, task="text", text=texts.add(TEXT))
    stored(folder, config)
    at = page(encode([config]))
    assert f"{len(TEXT):,} characters" in words(at)
    assert "nobody else" not in words(at)


def test_what_a_model_wrote_goes_with_its_text(page: Open, folder: Path) -> None:
    config, store = RunConfig(depth=2, steps=40, task="text", text=texts.add(TEXT)), Store(folder)
    run = store.run(stored(folder, config))
    assert run is not None
    frames = Frames(store)

    def shown() -> bool:
        lanes = [Lane("A", config, (frames.recording(run),))]
        sent = message(lanes, "grad_block", Sent(), live=False, options=ChartOptions())
        return "writings" in sent

    assert shown()
    file = folder / "texts" / f"{config.text}.txt"
    file.rename(folder / "away")  # by hand
    assert not shown()
    (folder / "away").rename(file)
    checked(press(page(encode([config])), f"delete_{config.text}").run())
    assert not texts.is_here(config.text)
    assert not shown() and store.recording(run).writings == []


def test_another_task_and_back_brings_the_text_back_until_it_is_deleted(page: Open) -> None:
    at = give(wanting(page), TEXT)
    mine = duel(at).lanes
    checked(at.selectbox(key="knob_task").set_value("prose").run())
    assert {(lane.task, lane.text) for lane in duel(at).lanes} == {("prose", "")}
    assert "text" not in copied(at)
    checked(at.selectbox(key="knob_task").set_value("text").run())
    assert duel(at).lanes == mine
    (key,) = texts.listed()
    checked(press(at, f"delete_{key}").run())
    assert not texts.listed()
    assert f"(hash {key[:8]}…) that this server does not have" in words_of(at.warning[0])
    checked(at.button(key="reset").click().run())
    assert duel(at).lanes == (RunConfig(), RunConfig(scheme="post"))
