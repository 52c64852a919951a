"""What an address asks of the Duel page: settings, a preset or a step, and what is looked at."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from crossing_kit import case
from normviz.app.session import duel_link

from normviz import RunConfig
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS
from normviz.limits import SEEDS
from normviz.links import encode

HERO = PRESETS["hero"].lanes()


def read(query: str) -> duel_link.DuelLink:
    return duel_link.decode(parse_qs(query, keep_blank_values=True))


def test_settings_a_preset_or_a_step_ask_for_a_duel() -> None:
    lane, step = RunConfig(scheme="post"), STEPS[2]
    for query, lanes, story, probe in (
        (encode([lane]), (lane,), 0, duel_link.PROBE),
        (f"story=3&{encode([lane])}", (lane,), 3, duel_link.PROBE),
        ("preset=warmup", PRESETS["warmup"].lanes(), 0, duel_link.PROBE),
        ("story=3", step.lanes(), 3, step.probe),
        ("story=3&probe=stream_rms", step.lanes(), 3, "stream_rms"),
    ):
        with case(query):
            found = read(query)
            assert (found.is_named, found.lanes, found.story, found.probe) == (
                True,
                lanes,
                story,
                probe,
            )
            assert not found.notices
    for query in ("", "utm_source=mail", "probe=stream_rms", "story=99"):
        with case(query):
            found = read(query)
            assert not found.is_named and found.lanes == HERO
    assert not read("depth=5000").lanes and read("depth=5000").is_named


def test_a_duel_with_its_view_comes_back_from_its_link() -> None:
    lanes, cursor = (RunConfig(), RunConfig(depth=3)), {"at": 30, "layer": 4}
    said = duel_link.params(
        lanes, 2, "observed", SEEDS, probe="stream_rms", view="lines", cursor=cursor
    )
    found = duel_link.decode({name: [word] for name, word in said.items()})
    assert (found.lanes, found.story, found.beside, found.seeds) == (lanes, 2, "observed", SEEDS)
    assert (found.probe, found.view, found.cursor) == ("stream_rms", "lines", cursor)
    assert not found.notices
    assert duel_link.params(HERO) == {"v": "1", "scheme": "pre,post"}


def test_a_word_that_is_not_known_is_one_sentence() -> None:
    link = encode([RunConfig()])
    for more, sentence in (
        (
            "view=pie",
            "The link names the view 'pie', allowed are heat, ratio, lines, walk. The page shows heat.",
        ),
        ("seeds=7", f"The link asks for '7' seeds, allowed is 1 or {SEEDS}. The page shows 1."),
        (
            "view=heat&view=walk",
            "The link gives view 2 times, allowed is once: the first one is used.",
        ),
        ("probe=stream_rm", "The link names "),
        ("story=99", "The link names step '99' of the tour, which has steps 1 to 11."),
        (
            "colour=red&smell=rose",
            "The link also names 'colour', 'smell', which are not settings here",
        ),
        (
            "&".join(f"a{i}=1" for i in range(9)),
            "The link also names 'a0', 'a1', 'a2', 'a3', 'a4' and 4",
        ),
    ):
        with case(more):
            found = read(f"{link}&{more}")
            (notice,) = found.notices
            assert found.lanes and notice.startswith(sentence)


@pytest.mark.parametrize(
    ("query", "found", "wrong"),
    [
        ("at=30&layer=4", {"at": 30, "layer": 4}, []),
        ("at=0&layer=24", {"at": 0, "layer": 24}, []),
        ("at=199", {"at": 199}, []),
        ("at=200&layer=3", {"layer": 3}, ["at to '200', allowed is a whole number from 0 to 199"]),
        ("layer=25", {}, ["layer to '25', allowed is a whole number from 0 to 24"]),
        ("at=-1&layer=x", {}, ["at to '-1'", "layer to 'x'"]),
        ("at=٣&layer=1e3", {}, ["at to", "layer to '1e3'"]),
        ("at=" + "9" * 5000, {}, ["at to"]),
    ],
)
def test_a_link_sets_the_cursor(query: str, found: dict[str, int], wrong: list[str]) -> None:
    """To a step and a layer that some lane has."""
    asked = read(f"v=1&depth=12,24&{query}")
    assert asked.cursor == found
    assert len(asked.notices) == len(wrong)
    assert all(words in said for words, said in zip(wrong, asked.notices, strict=True))
