"""Texts on a shared server: it takes none, and shows nothing of those that its data folder holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hosted_kit import turn_on
from normviz.app.asgi import first_paint
from normviz.app.asgi.channel import Topic, read_snapshot
from normviz.app.session import backend, visitor
from normviz.app.views.duel import lanes, own_text, share
from page_kit import Open, at_page, checked, duel, runs, settings_open, words_of
from shelf_kit import kept
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from test_first_paint import client
from test_page_maps import cells, maps, small
from test_page_runs import listed
from test_page_text import TEXT, words

from normviz import RunConfig
from normviz.catalog import TASKS
from normviz.export import script, write_configs
from normviz.links import encode
from normviz.model import texts
from normviz.player import VIEWS
from normviz.policy import NO_TEXTS
from normviz.runs.store import Store, pictures
from normviz.runs.store.pictures import Picture

pytestmark = pytest.mark.slow

__all__ = ["client", "maps"]
CHANCE = 2.71828
"""In place of the text's entropy, to be found in what a server says."""
CARD = b"\x89PNG of a secret"
PRIVATE = (f"{len(TEXT):,} characters", "2.718", "a secret drawing")


@dataclass
class Before:
    """What a data folder holds from the time before it was shared: a run on a text, and a cell of a map."""

    config: RunConfig
    run: int
    cell: RunConfig


@pytest.fixture
def before(folder: Path, page: Open) -> Before:
    """Of visitor a, who copied the link. The page shows it where it is not shared."""
    store, key = Store(folder), texts.add(TEXT)
    config = RunConfig(depth=2, steps=40, task="text", text=key)
    cell = small(task="text", text=key).grid.cells[0].config
    run, _ = kept(store, config), kept(store, cell, steps=20)
    store.db.connection.execute(
        "UPDATE runs SET visitor = 'a', linked = 1, chance = ?, text = ? "
        "WHERE json_extract(config, '$.text') = ?",
        (CHANCE, key * 2, key),
    )
    pictures.ask(store, [run], None)
    drawn = dict.fromkeys(("loss", "bars"), "<svg>a secret drawing</svg>")
    pictures.keep(store, [run], Picture(drawn, drawn, CARD))
    said = everything(at := page(encode([config])))
    assert runs(at) == [run] and PRIVATE[0] in said
    return Before(config, run, cell)


@pytest.fixture(params=["a"])
def who(before: Before, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The server starts again, shared; the test goes on as the visitor who trained, and where its
    parameter says so as a stranger too."""
    turn_on(monkeypatch)
    monkeypatch.setattr(visitor, "me", lambda: request.param)
    return request.param


def errors(at: AppTest) -> str:
    return "\n".join(map(words_of, at.error))


def sent(at: AppTest) -> str:
    """All that the server sent for the page, and the address."""
    elements = [str(getattr(element, "proto", "")) for element in (*at.main, *at.sidebar)]
    return "\n".join([*elements, str(at.query_params)])


def everything(at: AppTest) -> str:
    """The same of the duel, with its link as text."""
    return f"{words(at)}\n{sent(at)}"


def assert_private(said: str) -> None:
    assert [secret for secret in PRIVATE if secret in said] == []


@pytest.mark.parametrize("who", ["a", "b"], indirect=True)
def test_a_link_to_a_text_opens_without_its_results_and_trains_nothing(
    page: Open, folder: Path, before: Before, who: str
) -> None:
    at = page(encode([before.config]))
    assert duel(at).lanes == (before.config,) and runs(at) == []
    assert f"This link {NO_TEXTS}." in [words_of(info) for info in at.info]
    assert_private(everything(at))
    for key in ("train", "step"):
        checked(at.button(key=key).click().run())
        assert f"This run {NO_TEXTS}" in errors(at), key
        assert_private(everything(at))
    assert duel(at).runs == (None,) and Store(folder).queued() == []


def test_a_typed_hash_shows_and_trains_nothing(
    page: Open, folder: Path, before: Before, who: str
) -> None:
    at = settings_open(page(), 0)
    for name in ("depth", "steps", "text"):
        checked(at.selectbox(key="lane0_own").set_value(name).run())
        value = str(getattr(before.config, name))
        checked(at.text_input(key="lane0_value").set_value(value).run())
    assert duel(at).lanes[0] == before.config and before.run not in runs(at)
    assert_private(everything(at))
    checked(at.button(key="train").click().run())
    assert f"This run {NO_TEXTS}" in errors(at) and Store(folder).queued() == []


def test_maps_and_anatomy_show_nothing_of_it(
    maps: Callable[..., AppTest], anatomy: Open, folder: Path, before: Before, who: str
) -> None:
    at = maps(small(task="text", text=before.cell.text))
    assert f"This link {NO_TEXTS}." in [words_of(info) for info in at.info]
    assert not any(cell["there"] for rows in cells(at) for cell in rows)
    checked(at.button(key="fill").click().run())
    assert f"This run {NO_TEXTS}" in errors(at)
    at = anatomy(encode([before.config]))
    assert f"Not measured here: this run {NO_TEXTS}" in errors(at)
    assert Store(folder).queued() == Store(folder).queued(cells=True) == []


@pytest.mark.parametrize("who", ["a", "b"], indirect=True)
def test_the_list_of_runs_does_not_know_it(folder: Path, before: Before, who: str) -> None:
    key = before.config.text
    at = checked(at_page("runs").run())
    for asked in ("", "text", key[:8], f"text {key}", before.config.key, str(before.run)):
        checked(at.text_input(key="runs_search").set_value(asked).run())
        assert before.run not in listed(at)
        said = sent(at)
        assert_private(said)
        assert key[:8] not in said.replace(asked or " ", "") and "be shown: they come" not in said


def test_no_file_socket_or_picture_has_anything_of_it(
    page: Open, client: TestClient, before: Before, who: str
) -> None:
    link = encode([before.config])
    (lane,) = lanes.current(duel(page(link)), backend.shared())
    taken = share._taken(lane, backend.shared())
    assert taken.recordings == ()
    assert_private(write_configs([taken]) + script(taken))
    for view in VIEWS:
        shot = read_snapshot(Topic(runs=(before.run,), probe="grad_block", view=view))
        assert shot.lanes == ()
        assert_private(shot._write(shot.sent))
    assert_private(client.get(f"/?{link}").text)
    assert client.get(f"/{first_paint.PICTURE}?{link}").content != CARD


def test_the_page_takes_no_text_and_says_where_one_is_taken(
    page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = TASKS.label("text")
    assert label in page().selectbox(key="knob_task").options
    turn_on(monkeypatch)
    assert label not in page().selectbox(key="knob_task").options
    at = page(f"v=1&task=text&text={'0' * 32}")
    assert at.selectbox(key="knob_task").value == "text"
    assert own_text.ELSEWHERE in [caption.value for caption in at.caption]
    assert not at.text_area and not at.file_uploader
