"""The tour, the presets and the suggestions on the page, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crossing_kit import case
from page_kit import Open, address, checked, chips, duel, runs, shown, view_at, words_of
from streamlit.testing.v1 import AppTest

from normviz.config import RunConfig
from normviz.lessons.presets import PRESETS
from normviz.lessons.suggest import suggestions
from normviz.lessons.tour import STEPS
from normviz.links import decode, encode
from normviz.runs.frames import Frames
from normviz.runs.store import Store

pytestmark = pytest.mark.slow

NUMBERS = range(1, len(STEPS) + 1)
ASKING = [number for number in NUMBERS if STEPS[number - 1].question]


def texts(at: AppTest, linked: bool = False) -> str:
    """All Markdown of the page; without the links that set the cursor, unless they are asked for."""
    said = " ".join(m.value for m in at.markdown)
    return said if linked else re.sub(r"\[(step \d+)\]\(#step-\d+\)", r"\1", said)


def caption(number: int, folder: Path) -> str:
    """What a step says, from the store itself."""
    step, store = STEPS[number - 1], Store(folder)
    frames = Frames(store)
    found = [run for lane in step.lanes() if (run := store.latest(lane.key))]
    said = step.caption(tuple(map(frames.recording, found)))
    assert said is not None
    return said


@pytest.mark.parametrize("number", [2, *ASKING])
def test_a_link_opens_its_step_finished_and_the_address_holds_it(
    page: Open, folder: Path, number: int
) -> None:
    """Where it asks, with neither charts nor verdicts before the guess."""
    step = STEPS[number - 1]
    at = page(f"story={number}")
    assert duel(at).lanes == step.lanes() and duel(at).probe == step.probe
    assert f"**{step.title}**" in texts(at) and f"step {number} of {len(STEPS)}" in texts(at)
    query = "&".join(f"{name}={word}" for name, word in address(at).items())
    assert query.startswith(encode(step.lanes())) and f"story={number}" in query
    if step.question:
        guessed(at, number, folder)
    assert len(runs(at)) == len(step.lanes())
    assert (shown(at)["topic"]["probe"], shown(at)["start"]) == (step.probe, "replay")
    assert (shown(at)["park"], shown(at)["tab"]) == (step.at, step.tab)
    assert "**Why?**" in texts(at)
    assert caption(number, folder) in texts(at)
    linked = re.findall(r"\[step (\d+)\]\(#step-(\d+)\)", texts(at, linked=True))
    assert all(word == step for word, step in linked)
    assert {n for n, _ in linked} == set(
        re.findall(r"\bstep (\d+)\b", caption(number, folder) + step.why + step.where())
    )
    assert not [c for c in chips(at) if "not trained" in c or "press Train" in c]
    again = page(query)
    assert (duel(again).lanes, duel(again).probe) == (duel(at).lanes, duel(at).probe)
    assert f"**{step.title}**" in texts(again)
    assert not again.info or [i.value for i in again.info] == ["The charts wait for your guess."]


def guessed(at: AppTest, number: int, folder: Path) -> None:
    """Guess each answer, one after the other: what is said of it, and that the charts play."""
    step = STEPS[number - 1]
    right = {3: "1", 5: "0", 7: "1"}[number]
    for choice in ("none", "0", "1"):
        assert step.question and step.question.text in texts(at)
        assert step.where() not in texts(at), "nothing is said of charts that are not there yet"
        assert not runs(at) and all("waits for your guess" in chip for chip in chips(at))
        assert caption(number, folder) not in texts(at)
        before = duel(at).nonce
        checked(at.button(key=f"guess_{choice}").click().run())
        assert duel(at).nonce > before and shown(at)["start"] == "replay"
        found = [re.sub(r"\[(step \d+)\]\(#step-\d+\)", r"\1", m.value) for m in at.markdown]
        said = next(words for words in found if caption(number, folder) in words)
        start = "**" if choice == "none" else "Right: **" if choice == right else "Not quite: **"
        assert said.startswith(start + step.question.choices[int(right)])
        if choice != "1":
            duel(at).guess = None
            checked(at.run())


def test_the_contents_lead_to_every_step(folder: Path) -> None:
    links = view_at("tour", {}).get("page_link")
    steps = {f"{n}. {step.title}": f"story={n}" for n, step in enumerate(STEPS, start=1)}
    assert {link.proto.label: link.proto.query_string for link in links} == steps


def test_a_step_that_is_not_there_is_said(page: Open) -> None:
    for word in ("99", "x", "0", "１", ""):
        at = page(f"story={word}")
        assert duel(at).lanes == PRESETS["hero"].lanes() and duel(at).story == 0
        assert len(runs(at)) == 2
        said = [words_of(info) for info in at.info]
        told = f"The link names step {word!r} of the tour, which has steps 1 to 11."
        assert said == ([told] if word else [])


def test_a_settings_link_may_name_a_step_that_is_not_there(page: Open) -> None:
    lane = RunConfig(scheme="post")
    at = page(f"story=99&{encode([lane])}")
    assert duel(at).lanes == (lane,)
    assert "steps 1 to 11" in words_of(at.info[0])


def test_the_tour_goes_on_and_back_and_ends(page: Open) -> None:
    at = page()
    checked(at.button(key="tour").click().run())
    for number in NUMBERS:
        assert duel(at).story == number and duel(at).lanes == STEPS[number - 1].lanes()
        assert address(at)["story"] == str(number)
        assert at.button(key="story_next").disabled == (number == len(STEPS))
        if number < len(STEPS):
            checked(at.button(key="story_next").click().run())
    ends = {"story_dot_1", "story_play", "story_back", "story_close"}
    assert ends <= {b.key for b in at.button}  # where to go from the last step
    checked(at.button(key="story_back").click().run())
    assert duel(at).story == len(STEPS) - 1
    checked(at.button(key="story_close").click().run())
    assert duel(at).story == 0 and duel(at).lanes == STEPS[-2].lanes()
    assert "story" not in address(at)
    assert at.button(key="tour") and len(runs(at)) == 3


def test_the_contents_open_any_step_and_the_end_is_the_opening_duel(page: Open) -> None:
    """With its settings open on a phone, until another duel is."""

    def sheets() -> list[str]:
        found = (
            re.match('<details class="sheet"( open)?>', one.proto.body) for one in at.get("html")
        )
        return [one[1] for one in found if one]

    at = page("story=2")
    checked(at.button(key=f"story_dot_{len(STEPS)}").click().run())
    assert duel(at).story == len(STEPS)
    checked(at.button(key="story_play").click().run())
    assert duel(at).lanes == PRESETS["hero"].lanes() and duel(at).story == 0
    assert len(runs(at)) == 2 and sheets() == [" open"]
    checked(at.button(key="reset").click().run())
    assert sheets() == [None]


def test_a_projector_gets_the_charts_without_the_rail(page: Open) -> None:
    """On every page that the visitor goes to, until the button that also begins it."""
    at = page("present=1")
    assert not at.info and len(runs(at)) == 2
    assert at.button(key="train") and at.button(key="tour") and not at.select_slider
    assert address(at)["present"] == "1"
    checked(at.button(key="projector").click().run())
    assert at.select_slider and "present" not in address(at)
    checked(at.button(key="projector").click().run())
    assert not at.select_slider and address(at)["present"] == "1"


def test_changed_settings_are_not_explained(page: Open, folder: Path) -> None:
    at = page("story=2")
    assert not at.select_slider and not [
        b for b in at.button if b.key == "train"
    ]  # only to be read
    changed = encode([lane.replace(depth=24) for lane in STEPS[1].lanes()])
    at = page(f"story=2&{changed}")
    assert at.select_slider(key="knob_depth").value == 24
    assert caption(2, folder) not in texts(at) and "You changed the settings" in texts(at)
    checked(at.button(key="story_again").click().run())
    assert duel(at).lanes == STEPS[1].lanes() and caption(2, folder) in texts(at)


def test_leaving_a_step_stops_what_was_started_there(page: Open, folder: Path) -> None:
    at = page(f"story=2&{encode([lane.replace(steps=30) for lane in STEPS[1].lanes()])}")
    checked(at.button(key="train").click().run())
    mine = duel(at).runs
    checked(at.button(key="story_next").click().run())
    store = Store(folder)
    assert all([action for _, action, _ in store.controls(run, 0)] == ["stop"] for run in mine)


def test_a_preset_opens_finished(page: Open, folder: Path) -> None:
    """By its card, which has a picture of its result, and by a link: the runs of all of them ship."""
    at = page()
    at.session_state["presets_open"] = True
    bodies = [html.proto.body for html in checked(at.run()).get("html")]
    pictures = {
        it for it in bodies if "<img" in it and not {"glyph", "blocks"} & set(it.split('"'))
    }
    assert len(pictures) == len(PRESETS)
    assert all('alt="A ' in it and "data:image/svg+xml" in it for it in pictures)
    store, (first, *_, last) = Store(folder), (one for one in PRESETS if one.key != "hero")
    assert all(store.latest(lane.key) for preset in PRESETS for lane in preset.lanes())
    for preset in (first, last):
        with case(preset.key):
            if preset is first:
                checked(at.button(key=f"open_{preset.key}").click().run())
                assert not [b for b in at.button if b.key and b.key.startswith("open_")]
            else:
                at = page(f"preset={preset.key}")
            assert duel(at).lanes == preset.lanes()
            assert len(runs(at)) == len(preset.lanes())
            assert (shown(at)["start"] == "replay") == (preset is first)
            assert not [c for c in chips(at) if "not trained" in c or "press Train" in c]
            params = {name: [word] for name, word in address(at).items()}
            assert decode(params).lanes == preset.lanes()


def test_a_suggestion_sets_the_state(page: Open) -> None:
    at = page()
    for n, wanted in enumerate(suggestions(PRESETS["hero"].lanes())):
        assert at.button(key=f"try_{n}").label == wanted.text
        checked(at.button(key=f"try_{n}").click().run())
        assert duel(at).lanes == wanted.lanes and not duel(at).story
        checked(at.button(key="reset").click().run())


def test_references_are_links(page: Open) -> None:
    at = page()
    at.session_state["why"] = True
    checked(at.run())
    sources = [c.value for c in at.caption if "J is a Jacobian" in c.value]
    assert len(sources) == 2
    assert all("](https://arxiv.org/abs/" in value for value in sources)
