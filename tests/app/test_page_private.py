"""A visitor's text on a shared server: only the browser that gave it trains on it or sees its hash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from normviz.app.session import backend
from page_kit import Open, at_page, checked, chips, duel, runs, words_of
from shelf_kit import kept
from streamlit.testing.v1 import AppTest
from task_kit import WORDS
from test_page_hosted import Become, become, captions
from test_page_maps import maps, small
from test_page_runs import listed, ours
from test_page_text import TEXT, give, press, wanting, words

from normviz import RunConfig
from normviz.export import archive, read_configs, replay, script, write_configs
from normviz.links import encode
from normviz.model import texts
from normviz.runs.store import Store

pytestmark = pytest.mark.slow

__all__ = ["become", "maps"]
NOT_KEPT = "a text that this server does not keep for this browser"


@pytest.fixture
def theirs(page: Open, folder: Path, become: Become) -> RunConfig:
    """A finished run of visitor a on a text that they gave; the test goes on as visitor b."""
    at = give(wanting(page), TEXT)
    (key,) = texts.listed()
    config = RunConfig(depth=2, steps=40, task="text", text=key)
    store = Store(folder)
    run = kept(store, config)
    store.db.connection.execute("UPDATE runs SET visitor = 'a' WHERE id = ?", (run,))
    assert duel(at).lanes[0].text == key
    become("b")
    return config


def errors(at: AppTest) -> str:
    return "\n".join(map(words_of, at.error))


def everything(at: AppTest) -> str:
    """All that the server sent for the page, and the address."""
    sent = [str(getattr(element, "proto", "")) for element in (*at.main, *at.sidebar)]
    return "\n".join([*sent, str(at.query_params)])


def test_a_stranger_with_the_link_sees_curves_but_can_not_train(
    page: Open, folder: Path, theirs: RunConfig
) -> None:
    at = page(encode([theirs]))
    assert runs(at) and "learned" in chips(at)[0]
    assert [words_of(info) for info in at.info] == [
        f"This link trains on {NOT_KEPT}: here a text is private to the browser that gave it. Give the "
        "same text to train on it; stored results stay readable."
    ]
    assert f"{len(TEXT):,} characters" not in words(at) and "distinct, unigram" not in words(at)
    assert not [button for button in at.button if (button.key or "").startswith("delete_")]
    for key in ("train", "step", "repeat"):
        checked(at.button(key=key).click().run())
        assert f"This run trains on {NOT_KEPT}" in errors(at), key
        assert Store(folder).queued() == []


def test_what_a_model_wrote_is_shown_to_the_giver_alone(
    page: Open, folder: Path, theirs: RunConfig, become: Become
) -> None:
    wrote = "the secret line of a text"
    Store(folder).db.connection.execute("UPDATE runs SET wrote = ?", (wrote,))
    at = page(encode([theirs]))
    assert "## What came out" in [words_of(one) for one in at.markdown]
    assert "secret line" not in everything(at)
    become("a")
    at = page(encode([theirs]))
    assert f"A Pre-LN writes: “{wrote}”" in captions(at)
    checked(press(at, f"delete_{theirs.text}").run())
    assert "secret line" not in everything(page(encode([theirs])))
    run = Store(folder).latest(theirs.key)
    assert run is not None and not run.wrote


def test_a_typed_hash_gives_a_stranger_nothing(page: Open, folder: Path, theirs: RunConfig) -> None:
    at = page()
    checked(at.selectbox(key="lane0_own").set_value("text").run())
    checked(at.text_input(key="lane0_value").set_value(theirs.text).run())
    assert duel(at).lanes[0].text == theirs.text
    assert "distinct, unigram" not in words(at)
    checked(at.button(key="train").click().run())
    assert f"This run trains on {NOT_KEPT}" in errors(at)
    assert Store(folder).queued() == []


def test_a_stranger_can_not_tell_whether_a_text_is_here(page: Open, theirs: RunConfig) -> None:
    """Of settings that nobody trained the page says the same, whether the text is kept or not."""
    untrained = theirs.replace(depth=3)
    nowhere = untrained.replace(text="0" * len(theirs.text))
    said = []
    for config in (untrained, nowhere):
        at = page(encode([config]))
        checked(at.button(key="train").click().run())
        shown = [words(at), errors(at), str([e.proto.expanded for e in at.expander])]
        said.append("\n".join(shown).replace(config.text, "HASH").replace(config.text[:8], "HASH"))
    assert said[0] == said[1]


def test_a_stranger_fills_no_map_on_it(maps, folder: Path, theirs: RunConfig) -> None:
    at = maps(small(task="text", text=theirs.text))
    assert any(f"This link trains on {NOT_KEPT}" in words_of(info) for info in at.info)
    checked(at.button(key="fill").click().run())
    assert f"This run trains on {NOT_KEPT}" in errors(at)
    assert not at.session_state["maps"].jobs


def test_a_stranger_measures_nothing_on_it(anatomy: Open, folder: Path, theirs: RunConfig) -> None:
    at = anatomy(encode([theirs]))
    assert f"Not measured here: this run trains on {NOT_KEPT}" in errors(at)
    assert Store(folder).queued() == []


def test_the_list_of_runs_names_it_to_nobody_else(
    folder: Path, theirs: RunConfig, become: Become
) -> None:
    def shelf() -> AppTest:
        return checked(at_page("runs").run())

    at, store = shelf(), Store(folder)
    assert ours(at, store) == []
    assert theirs.text[:8] not in everything(at) and "only in your browser" in captions(at)
    for asked in ("text", theirs.text[:8], f"text {theirs.text}", theirs.key):
        checked(at.text_input(key="runs_search").set_value(asked).run())
        assert listed(at) == [] and theirs.text[:8] not in everything(at).replace(asked, "")
    become("a")
    at = shelf()
    (run,) = ours(at, store)
    assert theirs.text[:8] in everything(at)
    checked(at.checkbox(key=f"pick_{run}").set_value(True).run())
    checked(at.button(key="reopen").click().run())
    assert duel(at).lanes == (theirs,)


def test_files_of_a_stranger_do_not_hold_the_hash(
    page: Open, folder: Path, theirs: RunConfig
) -> None:
    from normviz.app.session.backend import shared
    from normviz.app.views.duel import share

    from normviz.runs.frames import Frames
    from normviz.runs.lane import stored_lane

    page()
    store = Store(folder)
    sha = "f" * 64  # as the trainer writes it
    store.db.connection.execute("UPDATE runs SET text = ? WHERE text IS NULL", (sha,))
    lane = stored_lane("A", store.latest(theirs.key), Frames(store))

    def files(who: str) -> list[str]:
        taken = [share._taken(lane, shared(), who)]
        tables = archive(taken, "parquet") + archive(taken, "csv")
        return [write_configs(taken), script(taken[0]), unzipped(taken), replay(taken), str(tables)]

    for text in files("b"):
        assert theirs.text not in text and sha not in text
    settings, source, numbers, *_ = files("a")
    assert read_configs(settings).lanes == (theirs,)
    assert theirs.text in numbers and sha in numbers
    assert "this is not the text" not in source  # it has no hash to compare with
    with pytest.raises(ValueError, match="no text is named: paste one on the page, or give"):
        read_configs(files("b")[0])
    compile(files("b")[1], "script", "exec")


def unzipped(taken) -> str:
    """The table of runs."""
    from normviz.export import tables

    return tables(taken)["runs"].to_pandas().to_csv()


def test_the_socket_says_nothing_that_a_guessed_text_could_be_held_against(
    folder: Path, page: Open, theirs: RunConfig
) -> None:
    from normviz.app.asgi.channel import Topic, read_snapshot

    page()
    run = Store(folder).latest(theirs.key)
    assert run is not None
    for view in ("heat", "walk"):
        shot = read_snapshot(Topic((run.id,), "grad_block", view=view))
        sent = shot._write(shot.sent)
        assert theirs.text not in sent and theirs.key not in sent
        assert json.loads(sent)["lanes"]


def test_the_giver_trains_and_deletes_after_a_restart_of_server_and_page(
    page: Open, folder: Path, theirs: RunConfig, become: Become
) -> None:
    backend.forget()
    at = page(encode([theirs]))
    assert not [b for b in at.button if b.key == f"delete_{theirs.text}"]
    become("a")
    at = page(encode([theirs]))
    assert not at.info and f"{len(TEXT):,} characters" in words(at)
    checked(at.button(key="train").click().run())
    assert len(Store(folder).queued()) == 1 and not at.error
    checked(press(at, f"delete_{theirs.text}").run())
    assert texts.listed() == []


def test_two_visitors_who_give_the_same_text_both_have_it_until_both_delete_it(
    page: Open, folder: Path, theirs: RunConfig, become: Become
) -> None:
    mine = give(wanting(page), TEXT)
    checked(mine.button(key="train").click().run())
    assert len(Store(folder).queued()) == 2
    checked(press(mine, f"delete_{theirs.text}").run())
    assert texts.listed() == [theirs.text]
    checked(mine.button(key="train").click().run())
    assert NOT_KEPT in errors(mine)
    become("a")
    at = page(encode([theirs]))
    checked(press(at, f"delete_{theirs.text}").run())
    assert texts.listed() == []


def test_nobody_trains_on_a_text_that_nobody_gave_on_the_page(page: Open, folder: Path) -> None:
    """As a text that lay in the data folder before texts had givers."""
    at = page(encode([RunConfig(task="text", text=texts.add(WORDS))]))
    checked(at.button(key="train").click().run())
    assert NOT_KEPT in errors(at) and Store(folder).queued() == []
