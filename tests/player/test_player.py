"""The player: what travels is enough, and its modules do what their tests in `tests/player` say."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from charts_kit import DEPTH, NODE, PLAYER, broken, few, in_node, make

from normviz import RunConfig, player
from normviz.catalog.probes import PROBES, recorded_by
from normviz.charts import ratio, scheme_style
from normviz.observed import Observed
from normviz.player import CARRIED, VIEWS, ChartOptions, Sent, View, message
from normviz.player.bundle import build_vega, folder, joined
from normviz.player.walk import walk
from normviz.runs.lane import Lane
from normviz.training.events import Writing

TESTS = Path(__file__).parent
EVIL = "</script><script>alert(1)</script>"


def spiky(probe: str = "grad_block") -> Lane:
    """A long run with peaks, zeros, gaps between its records, and numbers that are not finite."""
    rng = np.random.default_rng(3)
    steps, at = 3000, np.arange(0, 2900, 7)
    values = rng.lognormal(-3, 3, (len(at), DEPTH + 1))
    values[5, 2], values[9, 3], values[11, 4], values[12, 5] = 0.0, np.nan, np.inf, 1e30
    curve = rng.lognormal(0.5, 0.3, 2900)
    curve[1234], curve[2345], curve[2500] = 904.0, 0.0, np.nan
    return make("post", probe=probe, steps=steps, loss=curve, probe_steps=at, values=values)


QUOTIENT = """
const { records, values } = player.divided;
console.log(JSON.stringify({ records, values: values.map((row) => [...row]) }));
"""


@pytest.mark.parametrize(
    "lanes",
    [
        [broken(), make("pre", ran=30)],
        [spiky(), make("pre", steps=3000)],
        [few([0, 4, 65, 399]), few()],
    ],
    ids=["diverged", "long", "few"],
)
def test_the_axis_of_a_quotient_is_that_of_what_the_browser_divides(lanes: list[Lane]) -> None:
    """Python divides for the axis and the words, the browser for the picture."""
    told = message(lanes, "grad_block", Sent(), live=False, options=ChartOptions(view="ratio"))
    found = in_node(PLAYER + QUOTIENT, {"message": told, "cursor": 0})
    expected = ratio.quotient(lanes[0], lanes[1], "grad_block")
    assert found["records"] == expected.step.tolist()
    values = np.array(found["values"], float)
    assert values == pytest.approx(expected.drawn, rel=1e-5, nan_ok=True)


def test_a_browser_gets_only_what_it_lacks() -> None:
    sent, probe = Sent(), "grad_block"
    first = message([make(ran=20)], probe, sent, live=True, options=ChartOptions())
    second = message([make(ran=25)], probe, sent, live=True, options=ChartOptions())
    assert "charts" in first and "charts" not in second
    assert second["lanes"][0]["from"] == [20, 20] and second["lanes"][0]["records"] == [
        *range(20, 25)
    ]
    assert len(base64.b64decode(second["lanes"][0]["loss"])) == 4 * 5
    assert len(json.dumps(second)) < 1500
    dark = message([make(ran=25)], probe, sent, live=True, options=ChartOptions(dark=True))
    assert "charts" in dark and dark["lanes"][0]["records"] == []
    assert dark["saved"] == first["charts"] != dark["charts"], "what is saved is light"
    assert "saved" not in first


def test_a_browser_gets_each_writing_once_in_one_line_and_a_file_all_of_them() -> None:
    lane, sent = make(ran=20), Sent()
    at = np.full(20, None)
    at[[0, 12]] = Writing("a\nb", "first", bytes(6)), Writing("a\nb", "second", bytes(6))

    def lanes(n: int) -> list[Lane]:
        steps = replace(lane.recording.steps, writing=np.where(np.arange(20) < n, at, None))
        return [replace(lane, recordings=(replace(lane.recording, steps=steps),))]

    options, said = ChartOptions(), []
    for n in (0, 9, 20, 20):
        out = message(lanes(n), "grad_block", sent, live=True, options=options)
        said.append(
            [(one["from"], [w["text"] for w in one["fresh"]]) for one in out.get("writings", [])]
        )
    assert said == [[], [(0, ["first"])], [(1, ["second"])], [(2, [])]]
    text = player.page(lanes(20), "A duel", "")
    file = json.loads(text.split('id="numbers">')[1].split("</script>")[0])
    assert [w["prompt"] for w in file["writings"][0]["fresh"]] == ["a⏎b"] * 2
    assert not any("writings" in probe["numbers"] for probe in file["probes"].values())


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_held_of_a_run_for_its_charts_draws_the_same(view: View) -> None:
    probes = ("grad_block", *CARRIED)
    whole = [make(key, probes=recorded_by("one"), ran=40) for key in ("pre", "post")]
    small = [replace(x, recordings=(x.recording.for_charts_of(probes),)) for x in whole]
    look, end = ChartOptions(view=view), recorded_by("one")[-1]
    told = [message(x, "grad_block", Sent(), live=False, options=look) for x in (whole, small)]
    assert told[0] == told[1]
    assert not small[0].recording.steps.layers.size and not len(small[0].recording.layers(end).step)


def test_messages_are_json_whatever_the_numbers() -> None:
    for probe in PROBES.keys()[::3]:
        unknown = make(probe=probe, chance=float("nan"), floor=None)
        lanes = [broken(probe), spiky(probe), unknown]
        told = message(lanes, probe, Sent(), live=True, options=ChartOptions())
        json.dumps(told, allow_nan=False)


def test_a_page_holds_all_it_needs_and_runs_nothing_from_its_words() -> None:
    text = player.page([make(name=f"A  {EVIL}")], EVIL, EVIL)
    assert "<script>alert" not in text
    assert not any(word in text.split("<body>")[0] for word in ("src=", "href="))
    with pytest.raises(ValueError, match="at least one"):
        player.page([], "t", "w")


def test_the_name_of_an_observed_model_ends_no_script() -> None:
    """Such a name is in the caption, in the pages that replay it and in those that follow it."""
    plain, evil = (Observed(model=name, blocks=DEPTH, width=8) for name in ("Tiny", f"Tiny{EVIL}"))

    def pages(it: Observed) -> list[str]:
        lane = replace(make(name=f"A  {it.model}"), config=it)
        return [player.page([lane], it.model, it.model), player.posted_page(it, "grad_block")]

    for expected, text in zip(pages(plain), pages(evil), strict=True):
        assert EVIL not in text and "alert(1)" in text
        assert scripts(text) == scripts(expected)


def scripts(page: str) -> int:
    """The number of script elements that a parser of HTML finds."""
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: found.append(tag)
    parser.feed(page)
    return found.count("script")


@pytest.mark.slow
def test_vega_is_the_one_that_altair_was_written_for() -> None:
    """`assets/player/vega.js` is built by normviz.player.bundle.build_vega."""
    assert player.vega() == build_vega()


def test_the_joined_script_holds_every_module_and_leaves_one_name() -> None:
    modules = [path for path in folder().glob("*.js") if path.name != "vega.js"]
    for module in modules:
        (line, *_) = re.findall(r"^export (.*)", module.read_text("utf-8"), re.M)
        scripts = (player.script(), joined("live.js"), joined("worker.js"))
        assert any(line in text for text in scripts) or line.endswith('.js";'), module
    code = "(0, eval)(given); console.log(JSON.stringify(Object.keys(normvizPlayer)));"
    assert in_node(code, player.script()) == ["mount", "embedded", "posted", "socket"]


@pytest.mark.slow
def test_in_node() -> None:
    plan, files = json.dumps(walk(RunConfig(depth=3))), sorted(map(str, TESTS.glob("*.test.js")))
    done = subprocess.run(
        [NODE, "--test", "--experimental-test-isolation=none", *files],
        capture_output=True, text=True, check=False,
        env={**os.environ, "NORMVIZ_WALK": plan},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not re.search(r"(?:skipped|todo) [1-9]", done.stdout)


def test_what_is_of_earlier_settings_says_so_in_every_chart() -> None:
    """In its label and its colour; the browser fades the rest by `earlier`."""
    lanes = [make("pre"), make("post", name="B  Post-LN", earlier="depth 12")]
    told = message(lanes, "grad_block", Sent(), live=False, options=ChartOptions())
    assert [one["earlier"] for one in told["about"]] == [False, True]
    for name in ("loss", "bars", "heat1"):
        assert "B Post-LN (before: depth 12)" in json.dumps(told["charts"][name])
    assert scheme_style("post").color not in json.dumps(told["charts"]["loss"])
    assert scheme_style("pre").color in json.dumps(told["charts"]["loss"])


def test_a_lane_without_the_quantity_is_drawn_empty_beside_one_that_has_it() -> None:
    old_keys = PROBES.keys()[:10]
    new = make(probe="stream_max", probes=recorded_by("one"))
    old = make(name="B  post", probes=old_keys)
    for lanes in ([new, old], [old, new], [old, old]):
        for view in VIEWS:
            look = ChartOptions(view=view)
            sent = message(lanes, "stream_max", Sent(), live=False, options=look)
            json.dumps(sent, allow_nan=False)
            assert "its run did not record it" in sent["lacking"]
            assert "B post has no values of it" in sent["findings"]["bars"]
            assert [one["key"] for one in sent["probes"]][:10] == list(old_keys)
    alone = message([old], "stream_rms", Sent(), live=False, options=ChartOptions())
    assert [one["key"] for one in alone["probes"]] == list(old_keys)
    assert alone["lacking"] == ""
