"""What a browser makes of the numbers that it trained: the app's charts, rows and verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from charts_kit import in_node

from normviz import RunConfig
from normviz.browser.link import live_link
from normviz.browser.page import page_data, shipped_duel
from normviz.browser.templates import templates
from normviz.catalog.probes import PROBES, recorded_by
from normviz.home import shipped
from normviz.lessons.presets import PRESETS
from normviz.links import encode
from normviz.player import ChartOptions, Sent, message
from normviz.runs import Recording
from normviz.runs.archive import load
from normviz.runs.lane import Lane
from normviz.runs.names import with_names
from normviz.runs.verdict import judge

PROBES_ASKED = (
    "grad_block",
    "grad_qk",
    "stream_rms",
    "token_cosine",
    "branch_cosine",
    "update_ratio",
)
"""Of all layers or all blocks, on a log and a linear axis, as one minus it, with rounding, and with gaps."""
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")

MESSAGES = """
import { finished } from "player/live.js";
import { trained } from "player/trained.js";
const { duel, asked, templates } = given, out = [];
const lanes = duel.lanes.map((lane) => finished(lane, templates));
for (const [probe, view, linear, isLive] of asked) {
  const source = trained({ lanes, templates, isLive, status: null, walk: duel.walk });
  source.ask(() => ({ probe, view, linear, have: [] }), (message) => out.push({ ...message, lanes: [] }));
}
console.log(JSON.stringify(out));
"""


@pytest.fixture(scope="module")
def recordings() -> dict[str, Recording]:
    return {
        it.config.key: it
        for path in Path(shipped("assets"), "runs").glob("*.npz")
        for it in load(path)
    }


def differences(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two JSON values differ, by more than the last digits of single precision; "1.0" is "1"."""
    if isinstance(a, str) and isinstance(b, str):
        a, b = (NUMBER.sub(lambda m: f"{float(m[0]):.6g}", x) for x in (a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {*a, *b}:
            yield from differences(a.get(key), b.get(key), f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences(x, y, f"{path}[{i}]")
    elif a != b and not (
        isinstance(a, float | int)
        and isinstance(b, float | int)
        and a == pytest.approx(b, rel=1e-6)
    ):
        yield path, a, b


@pytest.mark.slow
@pytest.mark.parametrize("key", ["hero", "no_norm"])
def test_charts_axes_and_rows_are_those_of_the_app(
    key: str, recordings: dict[str, Recording]
) -> None:
    configs = PRESETS[key].lanes()
    its = [recordings[config.key] for config in configs]
    asked = [
        (probe, view, linear, live)
        for probe in PROBES_ASKED
        for view, linear, live in (
            ("heat", False, True),
            ("lines", True, False),
            ("ratio", False, False),
        )
    ]
    depths, schemes = [12], sorted({config.scheme for config in configs})
    lanes = with_names([Lane(name, it.config, (it,)) for name, it in zip("AB", its, strict=True)])
    given = {"duel": shipped_duel(lanes), "asked": asked, "templates": templates(depths, schemes)}
    for (probe, view, linear, live), found in zip(asked, in_node(MESSAGES, given), strict=True):
        look = ChartOptions(linear=linear, view=view)
        expected = json.loads(json.dumps(message(lanes, probe, Sent(), live=live, options=look)))
        for part in (
            "charts",
            "sets",
            "domain",
            "between",
            "probe",
            "palette",
            "live",
            "view",
            "probes",
        ):
            assert list(differences(expected[part], found.get(part)))[:3] == [], (probe, view, part)


def curves() -> Iterator[np.ndarray]:
    """Losses of every kind of end, with noise of every size; some near the limits of the rules: half of the
    way to a floor of 0 or 1, a slope of half of STILL, residuals that go together, one loss far off."""
    rng, chance = np.random.default_rng(7), 3.319
    for i in range(1200):
        n = int(rng.integers(3, 300))
        t = np.linspace(0, 1, n)
        shape = [
            chance + 0 * t, chance * (1 - 0.6 * t), 1 + 2.3 * np.exp(-8 * t), 3 * chance + 0 * t,
            3.3 * np.exp(-12 * t), chance + 0.3 * np.sin(6 * t), chance * (1 - 0.1 * rng.uniform() * t),
            chance - 0.5 * (chance - i % 3 % 2) * rng.normal(1, 0.02) + 0 * t,
            chance * (1.015 - rng.uniform(0.03, 0.07) * t),
            chance * rng.uniform(0.94, 1) + np.cumsum(rng.normal(0, 0.02, n)) * rng.uniform(),
            chance * 0.97 + 0.8 * np.exp(-rng.uniform(2, 9) * t),
            np.where(abs(t - 0.3) < 0.1, chance * rng.uniform(0.9, 0.98), chance),
        ][i % 12]  # fmt: skip
        sigma = 10 ** rng.uniform(-4, -0.3)
        losses = np.abs(shape + rng.normal(0, sigma, n))
        if i % 5 == 0:
            losses[rng.integers(n)] += 0.1 + sigma * rng.uniform(3, 5)
        yield (
            (losses * 10 ** rng.uniform(0, 30) if i % 50 == 0 else losses)
            .astype(np.float32)
            .astype(float)
        )


@pytest.mark.slow
def test_a_verdict_is_that_of_the_app(recordings: dict[str, Recording]) -> None:
    """The rule is written twice; every sentence of both is compared."""
    cases = [(losses, 3.319, [None, 1.0, 0.0][i % 3]) for i, losses in enumerate(curves())]
    ended = [it for it in recordings.values() if it.status == "finished"]
    cases += [(it.losses, it.chance, it.floor) for it in ended]
    found = in_node(
        'import { judge } from "player/verdict.js";'
        "console.log(JSON.stringify(given.map((of) => judge(...of).sentence)));",
        [(losses.tolist(), chance, floor) for losses, chance, floor in cases],
    )
    expected = [
        judge(losses, len(losses), chance, floor).sentence for losses, chance, floor in cases
    ]
    assert found == expected
    words = (
        "learned:",
        "learned little",
        "at chance",
        "back at chance",
        "learned in part",
        "solved",
        "above",
        "not settled",
        "still falling",
        "too short",
    )
    assert all(any(sentence.startswith(word) for sentence in expected) for word in words)


def test_a_link_is_that_of_the_app() -> None:
    hero = RunConfig()
    duels = [
        [hero, hero.replace(scheme="post")], [hero, hero], [hero.replace(lr=1e-5), hero.replace(lr=0.5)],
        [
            hero.replace(depth=24, steps=150, lr=10.0, task="copy", norm="rmsnorm", init_seed=3, data_seed=3)
        ] * 2,
        [hero.replace(dropout=0.25, task="prose"), hero.replace(task="prose")],
        [hero.replace(norm="dyt"), hero.replace(norm="none")],
    ]  # fmt: skip
    found = in_node(
        """
        import { linkOf, settingsOf } from "player/live.js";
        const { duels, data, data: { pinned } } = given;
        console.log(JSON.stringify(duels.map((lanes) => {
          const link = linkOf(lanes, pinned);
          const { lanes: again, problems } = settingsOf(`?${link}`, data);
          return [link, problems, linkOf(again, pinned)];
        })));
        """,
        {"duels": [[c.model_dump(mode="json") for c in duel] for duel in duels],
         "data": page_data(("pre", "post"), (2, 12, 24))},
    )  # fmt: skip
    assert found == [[encode(duel), [], encode(duel)] for duel in duels]
    assert all(live_link(duel) == encode(duel) for duel in duels)
    said = in_node(
        """
        import { settingsOf } from "player/live.js";
        const { queries, data } = given;
        console.log(JSON.stringify(queries.map((query) => settingsOf(query, data).problems)));
        """,
        {
            "queries": [
                "?v=1&depth=13",
                "?lr=0&steps=9999",
                "?width=64",
                "?norm=dyt&task=prose",
                "?norm=layernorm,dyt&dropout=0.1",
                "?norm=seednorm&dropout=1",
                "?norm=rmsnorm,dyt&depth=2",
                "?task=prose&dropout=0.2&depth=2",
            ],
            "data": page_data(("pre",), (2, 12)),
        },
    )
    assert "depth is 13, this page offers 2, 12" in said[0][0]
    assert said[1] == [
        "steps is 9999, allowed is a whole number from 1 to 2000",
        "lr is 0, allowed is a number above 0, up to 10",
    ]  # fmt: skip
    assert said[2] == ["the link names width, which this page does not offer: open it in the app"]
    assert said[3] == ["norm is dyt, with prose this page offers layernorm, rmsnorm"]
    assert said[4] == ["norm is dyt, with dropout this page offers layernorm, rmsnorm"]
    assert said[5][0].startswith("norm is seednorm, this page offers layernorm, rmsnorm, ")
    assert said[5][1] == "dropout is 1, allowed is a number from 0, below 1"
    assert said[6] == ["depth is 2, with the norm dyt this page offers 4, 12"]
    assert said[7] == ["depth is 2, with prose and dropout this page offers 4, 12, 16"]
    for change in (
        {"norm": "dyt", "task": "prose"}, {"norm": "dyt", "dropout": 0.1}, {"norm": "dyt", "depth": 24},
    ):  # fmt: skip
        assert live_link([hero.replace(**change)] * 2) is None


def test_every_quantity_of_one_stream_is_offered() -> None:
    found = templates((2,), ("pre",))
    assert [probe["key"] for probe in found["probes"]] == list(recorded_by("one"))
    assert {probe["first"] for probe in found["probes"]} == {
        PROBES[key].first_layer for key in recorded_by("one")
    }
