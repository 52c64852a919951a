"""Claims: rules and verdicts, from runs to a result, files, labs, and the records themselves."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from claims_kit import COUNTED, SMALL
from shelf_kit import kept

from normviz import RunConfig
from normviz.catalog import PROBES, SCHEMES
from normviz.charts.claim import chart, finding
from normviz.claims import CLAIMS, Claim
from normviz.claims.drive import ClaimError, read, run
from normviz.claims.figure import drawn
from normviz.claims.numbers import log_slope
from normviz.claims.record import Curve, Layers, Strip
from normviz.claims.rule import All, Between, Less, Part, Same, judge, value_sentence
from normviz.claims.sentences import expected
from normviz.claims.stored import ClaimResult, explained, folder, shipped_result, write
from normviz.claims.stored import read as read_file
from normviz.config import ENGINE
from normviz.export.pictures import picture
from normviz.maps import Done, Reused
from normviz.runs import shipped
from normviz.runs.shipped import adopt
from normviz.runs.store import Store
from normviz.training.schedule import coarse

# Rules


@pytest.mark.parametrize(
    ("check", "numbers", "outcome"),
    [
        (Between("a", 0, 1), {"a": [0.1, 0.9, 1.0]}, "true"),
        (Between("a", 0, 1), {"a": [0.1, 0.9, 1.1]}, "open"),
        (Between("a", 0, 1), {"a": [2.0, 3.0]}, "false"),
        (Between("a", 0, 1), {"a": [-1.0, 3.0]}, "open"),
        (Between("a", low=0), {"a": [math.nan, 1.0, 1.0]}, "open"),
        (Between("a", low=0), {"a": [math.nan]}, "false"),
        (Less("a", "b"), {"a": [1.0, 1.1, 1.0], "b": [2.0, 2.2, 2.1]}, "true"),
        (Less("b", "a"), {"a": [1.0, 1.1, 1.0], "b": [2.0, 2.2, 2.1]}, "false"),
        (Less("a", "b"), {"a": [1.0, 1.1, 1.0], "b": [1.1, 1.0, 1.0]}, "open"),
        (Less("a", "b"), {"a": [1.0, 1.0], "b": [2.0, 2.0]}, "open"),  # two seeds say nothing
        (Less("a", "b"), {"a": [1.0, 1.0, math.inf], "b": [2.0, 2.0, 2.0]}, "open"),
        (Same("a", "b", 0.1), {"a": [1.0, 1.01, 1.0], "b": [1.01, 1.0, 1.0]}, "true"),
        (Same("a", "b", 0.1), {"a": [1.0, 1.3, 1.0], "b": [1.2, 1.0, 1.0]}, "open"),
        (Same("a", "b", 0.1), {"a": [1.0, 1.01, 1.0], "b": [2.01, 2.0, 2.0]}, "false"),
        (All((Between("a", low=0), Between("a", high=1))), {"a": [0.5, 0.6]}, "true"),
        (All((Between("a", low=0), Between("a", high=1))), {"a": [0.5, 1.6]}, "open"),
        (All((Between("a", low=9), Between("a", high=1))), {"a": [0.5, 1.6]}, "false"),
    ],
)
def test_a_check_is_true_false_or_open(check, numbers, outcome: str) -> None:
    assert check.outcome(numbers) == outcome


@pytest.mark.parametrize(
    ("values", "kind", "sentence"),
    [
        ((0, 0), "holds", "holds"),
        ((0, 9), "holds in part", "holds in part: here; not there"),
        ((9, 9), "contradicted", "contradicted"),
        ((9, 5), "contradicted", "contradicted"),
        ((5, 5), "not distinguishable", "not distinguishable"),
        ((0, 5), "holds in part", "holds in part: here; not distinguishable there"),
    ],
)
def test_a_verdict_says_where(values: tuple[int, int], kind: str, sentence: str) -> None:
    """0 keeps the threshold in both seeds, 9 in none, 5 in one."""
    seeds = {0: [0.0, 0.0], 9: [9.0, 9.0], 5: [0.0, 9.0]}
    rule = (Part("here", Between("a", high=1)), Part("there", Between("b", high=1)))
    found = judge(rule, {"a": seeds[values[0]], "b": seeds[values[1]]})
    assert (found.kind, found.sentence) == (kind, sentence)


def test_numbers_in_words_say_their_seeds() -> None:
    assert value_sentence([1.0, 3.0, 2.0], ".1f") == "2.0 (1.0 to 3.0, 3 seeds)"
    assert value_sentence([192.0] * 3, ".0f") == "192 (3 seeds)"
    assert value_sentence([1.0], ".1f") == "1.0 (1 seed)"
    assert value_sentence([math.nan, 1.0], ".1f") == "not finite (2 seeds)"
    assert value_sentence([1.0, 3.0, 2.0], ".1f", seeds=False) == "2.0 (1.0 to 3.0)"
    assert value_sentence([1.0, 1.0], ".1f", seeds=False) == "1.0"
    assert value_sentence([-0.01, 0.01], ".1f", seeds=False) == "0.0"


def test_a_log_slope_is_the_exponent_of_a_power_law() -> None:
    assert log_slope([1, 2, 4, 8], [3, 6, 12, 24]) == pytest.approx(1)
    assert log_slope([6, 24, 96], [1, 0.5, 0.25]) == pytest.approx(-0.5)
    assert math.isnan(log_slope([1, 2], [0.0, 1.0]))
    assert math.isnan(log_slope([1], [1.0]))


# From runs to a result


def finished(store: Store, claim: Claim, **more) -> tuple[ClaimResult, list]:
    *news, result = run(store, claim, processes=1, **more)
    assert isinstance(result, ClaimResult)
    return result, news


@pytest.mark.slow
def test_a_claim_is_run_once_and_read_again(store: Store, tmp_path: Path) -> None:
    result, news = finished(store, SMALL)
    assert len([one for one in news if isinstance(one, Done)]) == 12
    assert result.seeds == 3 and len(result.runs) == 12
    assert result.verdict(SMALL).parts == (("with 2 blocks", "true"), ("in its gradients", "false"))
    assert result.verdict(SMALL).sentence == "holds in part: with 2 blocks; not in its gradients"
    assert all(len(values) == 3 for values in result.numbers.values())
    words = explained(SMALL, result)
    assert words.startswith("Slow ends at 3.") and words.endswith("over 3 seeds, with their range.")

    again, news = finished(store, SMALL)
    assert all(isinstance(one, Reused) for one in news)
    assert again.numbers == result.numbers
    stored = read(store, SMALL)
    assert stored is not None and stored.numbers == result.numbers
    more, news = finished(store, SMALL, seeds=4)
    assert len([one for one in news if isinstance(one, Done)]) == 4
    assert more.numbers["slow"][:3] == result.numbers["slow"]
    store.db.connection.execute("UPDATE runs SET origin = 'shipped sweep'")
    assert read(store, SMALL) is not None
    anew, news = finished(store, SMALL)
    assert len([one for one in news if isinstance(one, Done)]) == 12, "what ships was not run here"
    assert anew.numbers == result.numbers
    assert read(Store(_made(tmp_path / "empty")), SMALL) is None

    write(result, tmp_path / "T1.json")
    back = read_file(tmp_path / "T1.json")
    assert back.fits(SMALL)
    assert not replace(back, arms={**back.arms, "slow": {"depth": "1"}}).fits(SMALL)
    assert not replace(back, rule=back.rule[:1]).fits(SMALL)
    assert back.verdict(SMALL) == result.verdict(SMALL)
    assert back.numbers["slow"] == pytest.approx(result.numbers["slow"], rel=1e-5)
    figure = drawn(SMALL, back)
    assert [one.label for one in figure.points] == ["Pre-LN, slow", "Pre-LN, fast"]
    assert [len(ys) for ys in figure.points[0].y] == [3, 3]
    (line,) = figure.lines
    assert line.label == "half (from the first point)"
    assert line.points[-1][1] == pytest.approx(line.points[0][1] / 2**0.5)
    assert len(picture(chart(figure), "svg")) > 3000
    assert "final loss" in finding(figure)


def _made(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.slow
def test_a_claim_of_a_lab_is_measured(store: Store) -> None:
    result, news = finished(store, COUNTED)
    assert len(news) == 3 and result.runs == []
    assert result.numbers == {"norms": [4.0, 4.0, 4.0]}
    assert result.verdict(COUNTED).kind == "holds"
    assert len(picture(chart(drawn(COUNTED, result)), "svg")) > 2000
    assert read(store, COUNTED) is None


def test_a_result_counts_the_runs_of_each_engine(store: Store, tmp_path: Path) -> None:
    for cell in SMALL.cells():
        kept(store, cell.config, steps=cell.config.steps)
    store.db.connection.execute("UPDATE runs SET engine = 'tape' WHERE id > 2")
    store.db.connection.execute("UPDATE runs SET engine = NULL WHERE id = 1")
    result = read(store, SMALL)
    assert result is not None
    assert sorted(result.engines) == ["eager"] * 2 + ["tape"] * 10
    write(result, tmp_path / "now.json")
    now = read_file(tmp_path / "now.json")
    assert now.engines == result.engines
    earlier = json.loads((tmp_path / "now.json").read_text())
    del earlier["tape"]  # as files of earlier releases
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    found = read_file(tmp_path / "earlier.json")
    assert found == replace(now, tape=0) and set(found.engines) == {"eager"}
    assert found.fits(SMALL)


def test_a_stopped_claim_has_no_result(store: Store) -> None:
    assert not [one for one in run(store, SMALL, processes=1, stop=lambda: True)
                if isinstance(one, ClaimResult)]  # fmt: skip
    assert not [
        one for one in run(store, COUNTED, stop=lambda: True) if isinstance(one, ClaimResult)
    ]


@pytest.mark.slow
def test_a_run_that_fails_is_said(store: Store) -> None:
    arm = {**SMALL.arms["slow"], "task": "text", "text": "a" * 32}
    broken = Claim("T3", "", "", "", {"slow": arm, "fast": arm}, SMALL.numbers, SMALL.rule, "",
                   SMALL.figure)  # fmt: skip
    with pytest.raises(ClaimError, match=r"T3 has no result: .*this server does not have"):
        list(run(store, broken, processes=1))


# The records


def test_the_catalogue_says_of_post_ln_init_what_c7_measured() -> None:
    found = shipped_result(CLAIMS["C7"])
    assert found is not None
    below = [
        i < p for i, p in zip(found.numbers["top_init"], found.numbers["top_post"], strict=True)
    ]
    assert len(below) == 3 and all(below)
    assert "here with a smaller one (claim C7: 18 blocks, 3 seeds)" in SCHEMES["post_init"].trouble


def test_c12_does_not_promise_held_out_text() -> None:
    """Its task draws every batch from one text, whatever the step."""
    claim = CLAIMS["C12"]
    assert {arm["task"] for arm in claim.settings().values()} == {"prose"}
    assert "so this is no held-out text" in claim.words
    assert not any("never reached" in number.label for number in claim.numbers.values())


@pytest.mark.parametrize("key", CLAIMS.keys())
def test_a_record_is_whole(key: str) -> None:
    claim = CLAIMS[key]
    assert claim.seeds >= 3
    assert claim.sentence.endswith(".") and claim.source and claim.label
    assert 1 <= len(claim.lanes()) <= 4
    assert not claim.lab or all(lane.steps > 0 for lane in claim.lanes()), "no run is at step 0"
    named = set(re.findall(r"\{(\w+)\}", claim.words))
    assert named <= set(claim.numbers)
    for sentence in claim.rule_words():
        assert ": " in sentence
    if isinstance(claim.figure, Strip):
        assert set(claim.figure.names) <= set(claim.numbers)
    else:
        assert not claim.lab or isinstance(claim.figure, Curve)
    configs = {cell.key: cell.config for cell in claim.cells()}
    if isinstance(claim.figure, Layers):
        assert claim.figure.probe in PROBES
        assert all(claim.figure.step in (-1, *coarse(c)) for c in configs.values())


def test_no_number_of_a_result_is_typed() -> None:
    """A claim's words hold its settings as digits, and everything measured as a name."""
    for claim in CLAIMS:
        settings = {"1", "0", "2", "3", "4"}  # 1/sqrt(2L), W2, SGD and such
        configs = [cell.config.model_dump() for cell in claim.cells(1)]
        settings |= {f"{v:g}" for c in configs for v in c.values() if isinstance(v, int | float)}
        settings |= set(re.findall(r"\d+(?:\.\d+)?", claim.sentence + str(claim.rule_words())))
        plain = re.sub(r"\{\w+\}", "", claim.words)
        typed = set(re.findall(r"\d+(?:\.\d+)?", plain)) - settings
        assert typed <= KNOWN.get(claim.key, set()), claim.key


KNOWN = {
    "C2": {"1.25"},  # of the embedding: N(0, 1) and N(0, 0.25)
    "C8": {"1.4"},  # ln 96 / ln 24
    "C18": {"512"},  # tokens: 8 sequences of 64
    "C21": {"64"},  # bits
    "C22": {"0.02", "0.1"},  # the lab's standard deviations
    "C19": {"0.5"},  # where DyT's alpha starts
    "C24": {"1.6"},  # the goal
    "E3": {"3.32"},  # chance of the Markov task
}
"""What is no setting of the record and no result either."""


# What ships


SHIPPED = [claim.key for claim in CLAIMS if (folder() / f"{claim.key}.json").exists()]
CHEAP = ["C1", "C20", "C21", "C22", "E15"]


@pytest.mark.parametrize("key", SHIPPED)
def test_a_shipped_result_is_of_this_rule(key: str) -> None:
    result = shipped_result(CLAIMS[key])
    assert result is not None, "its rule or its numbers changed: run it again"
    assert result.seeds >= 3
    assert all(len(values) == result.seeds for values in result.numbers.values())
    words = explained(CLAIMS[key], result)
    assert "{" not in words and len(words) > 60
    chart(drawn(CLAIMS[key], result))


@pytest.mark.parametrize("key", [key for key in CHEAP if key in SHIPPED])
@pytest.mark.slow
def test_a_cheap_result_comes_out_again(key: str, store: Store) -> None:
    """If the present version of the engine measured it."""
    claim = CLAIMS[key]
    shipped = shipped_result(claim)
    assert shipped is not None
    fresh, _ = finished(store, claim)
    assert fresh.engine == ENGINE and set(fresh.numbers) == set(shipped.numbers)
    if shipped.engine < ENGINE:  # it drew other numbers
        return
    assert fresh.verdict(claim) == shipped.verdict(claim)
    for name, values in shipped.numbers.items():
        assert fresh.numbers[name] == pytest.approx(values, rel=0.02, abs=1e-9), name


@pytest.mark.slow
def test_no_caption_contradicts_a_stored_run(tmp_path: Path) -> None:
    """Every number of a result whose runs all ship is what those runs give."""
    store = Store(_made(tmp_path / "all"))
    adopt(store)
    shipped.adopt_cells(store)
    checked = 0
    for key in SHIPPED:
        claim, result = CLAIMS[key], shipped_result(CLAIMS[key])
        from_runs = read(store, claim)
        if result is None or from_runs is None:
            continue
        for name, values in result.numbers.items():
            expected = pytest.approx(values, rel=1e-4, abs=1e-9, nan_ok=True)
            assert from_runs.numbers[name] == expected, (key, name)
        assert from_runs.verdict(claim) == result.verdict(claim)
        checked += 1
    assert checked >= len([key for key in SHIPPED if not CLAIMS[key].lab]) // 2


def test_the_whole_set_takes_less_than_an_hour_on_two_cores() -> None:
    assert sum(expected(claim, shipped_result(claim), None, 2) for claim in CLAIMS) < 3600


def test_claims_come_from_settings_of_today() -> None:
    assert all(isinstance(c.config, RunConfig) for claim in CLAIMS for c in claim.cells()[:1])
