"""Claims: rules and verdicts, from runs to a result, files, labs, and the records themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from claims_kit import COUNTED, SMALL, TUNED
from crossing_kit import case
from rules_kit import CASES, shares, wrong
from shelf_kit import kept

from normviz import RunConfig
from normviz.catalog import PROBES
from normviz.catalog.models import Model, census
from normviz.charts.claim import chart, finding, has_links
from normviz.charts.palette import scheme_style
from normviz.config import ENGINE
from normviz.execution.cell import measure
from normviz.export.pictures import picture
from normviz.formats import duration
from normviz.home import shipped
from normviz.limits import MAX_SWEEP_SEEDS
from normviz.links import decode
from normviz.runs import Recording, Steps
from normviz.runs.archive import load
from normviz.runs.shipped import cells as shipped_cells
from normviz.runs.statistics import (
    T90,
    T95,
    benjamini_hochberg,
    holm,
    interval,
    p_value,
    sign_test,
)
from normviz.runs.store import Store
from normviz.studies.claims import CLAIMS, Claim
from normviz.studies.claims.choice import filled, redrawn
from normviz.studies.claims.correction import Family, sentences
from normviz.studies.claims.drive import ClaimError, run
from normviz.studies.claims.drive import result as result_of
from normviz.studies.claims.evidence import FINAL, CellResult, trains
from normviz.studies.claims.figure import drawn, figure_seeds, linked
from normviz.studies.claims.numbers import at_rate_of, log_slope
from normviz.studies.claims.record import Apart, Curve, Layers, Number, Strip, fits
from normviz.studies.claims.records.census import lead
from normviz.studies.claims.rule import (
    All,
    Between,
    Correlated,
    Fact,
    Less,
    LessInMost,
    Most,
    NotWorse,
    Part,
    Same,
    judge,
    value_sentence,
)
from normviz.studies.claims.sentences import (
    LOAD_SECONDS,
    basis,
    chip,
    core_seconds,
    expected,
    splits,
)
from normviz.studies.claims.ship import DEEP, FEW
from normviz.studies.claims.stored import (
    ClaimResult,
    explained,
    folder,
    held_out_tokens,
    number_sentences,
    pooled,
    shipped_check,
    shipped_lanes,
    shipped_result,
    shipped_sets,
    write,
)
from normviz.studies.claims.stored import read_result as read_file
from normviz.studies.maps import Cell, Done, Reused
from normviz.studies.maps.drive import found as results_in
from normviz.training.events import Started, Step
from normviz.training.schedule import coarse

# Rules


FIVE = [1.0, 1.1, 0.9, 1.0, 1.0]
FAR = [3.3, 3.2, 3.3, 3.4, 3.3]


OUTCOMES = [
    (Between("a", 0.5, 1.5), {"a": FIVE}, "true"),
    (Between("a", 1.0, 1.5), {"a": FIVE}, "undecided"),
    (Between("a", 2.0, 3.0), {"a": FIVE}, "false"),
    (Between("a", low=0), {"a": FIVE[:2]}, "undecided"),  # two seeds say nothing
    (Between("a", low=0), {"a": [math.nan, *FIVE]}, "undecided"),
    (Between("a", 0.5, 2), {"a": [1.0, 100.0, 0.01]}, "undecided"),
    (Between("a", 0.5, 2, ratio=True), {"a": [1.0, 1.2, 1 / 1.2]}, "true"),
    (Most("a", high=2), {"a": FIVE}, "true"),
    (Most("a", high=2), {"a": FIVE[:4]}, "undecided"),  # 4 of 4 happen once in 16 by chance
    (Most("a", high=2), {"a": [*FIVE[:4], 3.3]}, "undecided"),
    (Most("a", high=2), {"a": FAR}, "false"),
    (Most("a", high=2), {"a": [*FIVE, 1.0, 1.0, 3.3]}, "true"),
    (Most("a", low=1000), {"a": [math.inf] * 5}, "true"),
    (Most("a", low=0), {"a": [math.nan] * 5}, "false"),
    # of 8 placements r = 0.3 has -0.52 to 0.83 (math.atanh and 1.96 * sqrt(1.045 / 5) by hand)
    (Correlated("a", -0.5, 0.5, 8), {"a": [0.3] * 5}, "undecided"),
    (Correlated("a", -0.53, 0.84, 8), {"a": [0.3] * 5}, "true"),
    (Correlated("a", -0.5, 0.5, 8), {"a": [0.95] * 5}, "false"),
    (Correlated("a", -0.5, 0.5, 8), {"a": [1.0] * 5}, "undecided"),
    (Fact("a", 4, 4), {"a": [4.0]}, "true"),
    (Fact("a", 4, 4), {"a": [5.0, 5.0]}, "false"),
    (Fact("a", 4, 4), {"a": [4.0, 5.0]}, "undecided"),
    (Less("a", "b"), {"a": FIVE, "b": FAR}, "true"),
    (Less("b", "a"), {"a": FIVE, "b": FAR}, "false"),
    (Less("a", "b"), {"a": FIVE, "b": FIVE[::-1]}, "undecided"),
    (Less("a", "b", 0.5), {"a": FIVE, "b": FIVE[::-1]}, "no difference"),
    (Less("a", "b", 0.01), {"a": FIVE, "b": FIVE[::-1]}, "undecided"),
    (Less("a", "b"), {"a": FIVE[:2], "b": FAR[:2]}, "undecided"),
    (Less("a", "b"), {"a": [1.0, 1.0, math.inf], "b": [2.0, 2.0, 2.0]}, "undecided"),
    (Less("a", "b", ratio=True), {"a": [1.0, 0.1, 10.0], "b": [3.0, 0.31, 29.0]}, "true"),
    (
        Less("a", "b", 1.2, True),
        {"a": [1.0, 0.1, 10.0], "b": [1.0, 0.101, 9.9]},
        "no difference",
    ),
    (LessInMost("a", "b"), {"a": [0.01] * 5, "b": [0.03] * 5}, "true"),
    (LessInMost("a", "b"), {"a": [0.01] * 5, "b": [0.003] * 5}, "false"),
    (LessInMost("a", "b"), {"a": [0.01] * 5, "b": [0.01] * 5}, "no difference"),
    (LessInMost("a", "b"), {"a": [0.01] * 5, "b": [0.03] * 3 + [0.01] * 2}, "undecided"),
    (NotWorse("a", "b", 0.3), {"a": FIVE, "b": FIVE[::-1]}, "true"),
    (NotWorse("a", "b", 0.3), {"a": FIVE, "b": FAR}, "true"),
    (NotWorse("b", "a", 0.3), {"a": FIVE, "b": FAR}, "false"),
    (NotWorse("a", "b", 0.01), {"a": FIVE, "b": FIVE[::-1]}, "undecided"),
    (Same("a", "b", 0.3), {"a": FIVE, "b": FIVE[::-1]}, "true"),
    (Same("a", "b", 0.05), {"a": FIVE, "b": FIVE[::-1]}, "undecided"),
    (Same("a", "b", 0.3), {"a": FIVE, "b": FAR}, "false"),
    (All((Most("a", high=2), Most("b", low=2))), {"a": FIVE, "b": FAR}, "true"),
    (All((Most("a", high=2), Most("b", high=2))), {"a": FIVE, "b": FAR}, "false"),
    (All((Most("a", high=2), Between("b", 3.3, 9))), {"a": FIVE, "b": FAR}, "undecided"),
]


def test_a_check_has_one_of_four_outcomes() -> None:
    for check, numbers, outcome in OUTCOMES:
        with case(check, numbers):
            found = check.judge(numbers)
            assert found.outcome == outcome and found.evidence
            assert ("90 %: " in found.evidence) == isinstance(check, NotWorse), "others have 95 %"
            assert set(check.names) == set(numbers)
            assert check.sentence({name: name for name in numbers})


def test_a_p_value_is_the_error_rate_at_which_a_check_is_decided() -> None:
    for check, numbers, outcome in OUTCOMES:
        with case(check, numbers):
            p = check.p_value(numbers)
            if isinstance(check, Fact):
                assert p is None
            else:
                assert p is not None and (p <= 0.05) == (outcome != "undecided")
    fallen = {"a": [1.1] * 5}
    fails = Part("It fails", Most("a", low=2))
    assert fails.p_value({"a": FAR}, {}) == 1 / 32 and fails.p_value({"a": FAR}, fallen) == 1.0


def test_a_correction_says_what_it_leaves() -> None:
    good, bad = Part("It is here", Most("a", high=2)), Part("It is there", Between("b", low=9))
    fact = Part("It is", Fact("c", 4, 4))
    claim = replace(CLAIMS["C9"], rule=(good, bad, fact))
    verdict = judge(claim.rule, {"a": FIVE, "b": FAR, "c": [4.0]})
    parts = [(claim, one, p) for one, p in zip(verdict.parts, (1 / 32, 1e-6, None), strict=True)]
    both, one = Family(parts).left(benjamini_hochberg), Family(parts).left(lambda _: [False, True])
    assert (both.kept, both.lost, both.changed) == (2, [], [])
    assert one.kept == 1 and one.lost == [(claim, verdict.parts[0])]
    assert one.changed == [] and verdict.kind == "holds in part"
    said = sentences(Family(parts[:2] * 3))
    assert said[0].startswith(
        "6 parts are judged. 0 of them no seed changes. Of the other 6 seeds decide 6"
    )


GOOD, BAD, OPEN = FIVE, FAR, [*FIVE[:4], 3.3]
KINDS = [
    ((GOOD, GOOD), "holds", "holds"),
    ((GOOD, BAD), "holds in part", "holds in part (1 of 2 parts true, 1 false)"),
    ((GOOD, OPEN), "undecided", "undecided (1 of 2 parts true, 1 undecided)"),
    ((BAD, BAD), "contradicted", "contradicted"),
    ((BAD, OPEN), "contradicted", "contradicted (1 of 2 parts false, 1 undecided)"),
    ((OPEN, OPEN), "undecided", "undecided"),
]


def test_a_verdict_says_how_many_parts() -> None:
    rule = (Part("It is here", Most("a", high=2)), Part("It is there", Most("b", high=2)))
    for values, kind, sentence in KINDS:
        with case(sentence):
            found = judge(rule, {"a": values[0], "b": values[1]})
            assert (found.kind, found.sentence) == (kind, sentence)
            signs = {"t": "✓", "f": "✗", "u": "–"}
            assert [line[0] for line in found.lines()] == [signs[x] for x in found.outcomes]


CONTROLLED = [
    ((GOOD, GOOD), "holds", "holds"),
    ((GOOD, OPEN), "holds", "holds"),
    ((GOOD, BAD), "holds in part", "holds in part (1 of 1 part true; 1 of 1 control false)"),
    ((BAD, GOOD), "contradicted", "contradicted"),
    ((BAD, BAD), "contradicted", "contradicted"),
    ((OPEN, GOOD), "undecided", "undecided"),
]


def test_a_verdict_is_about_what_the_claim_says_whatever_is_true_of_its_controls() -> None:
    control = Part("It is there", Most("b", high=2), control=True)
    rule = (Part("It is here", Most("a", high=2)), control)
    assert control.sentence({"b": "b"}).startswith("Control: It is there: b is at most 2")
    for values, kind, sentence in CONTROLLED:
        with case(sentence):
            found = judge(rule, {"a": values[0], "b": values[1]})
            assert (found.kind, found.sentence) == (kind, sentence)
            assert " Control: It is there" in found.lines()[1]


def test_one_false_part_contradicts_a_general_claim() -> None:
    rule = (Part("It is here", Most("a", high=2)), Part("It is there", Most("b", high=2)))
    numbers = {"a": GOOD, "b": BAD}
    assert judge(rule, numbers).kind == "holds in part"
    assert judge(rule, numbers, general=True).sentence == (
        "contradicted (1 of 2 parts true, 1 false)"
    )
    assert judge(rule, {"a": GOOD, "b": OPEN}, general=True).kind == "undecided"


def test_equal_arms_are_no_difference_and_not_undecided() -> None:
    rule = (Part("It is less", LessInMost("a", "b")),)
    found = judge(rule, {"a": [0.01] * 5, "b": [0.01] * 5})
    assert (found.kind, found.outcomes) == ("no difference found", "n")


def test_a_run_that_still_falls_decides_only_what_it_cannot_change() -> None:
    fails = (Part("It fails", Most("a", low=2)),)
    trains = (Part("It trains", Most("a", high=2)),)
    fallen = {"a": [1.1] * 5}
    assert judge(fails, {"a": FAR}).kind == "holds"
    assert judge(fails, {"a": FAR}, fallen).kind == "undecided"
    assert "still fell" in judge(fails, {"a": FAR}, fallen).parts[0][1].evidence
    assert judge(trains, {"a": FIVE}, fallen).kind == "holds"
    less = (Part("It is less", Less("a", "b")),)
    assert judge(less, {"a": FIVE, "b": FAR}, {"a": [0.1] * 5}).kind == "holds"
    assert judge(less, {"a": FIVE, "b": FAR}, {"b": [0.1] * 5}).kind == "undecided"
    assert judge(less, {"a": FIVE, "b": FAR}, {"a": [0.1] * 5, "b": [0.5] * 5}).kind == "undecided"


@pytest.mark.slow
def test_a_check_is_seldom_wrong_and_more_seeds_decide_more() -> None:
    """On simulated seeds: at most one word in twenty is wrong, each of both on a limit itself."""
    for one in CASES:
        with case(one.label):
            draws = 100 if one.label.startswith("tuned") else 300
            few, many = (shares(one, n, draws) for n in (5, 20))
            for found in (few, many):
                if one.truth == "limit":
                    assert max(found.get("true", 0.0), found.get("false", 0.0)) < 0.085
                else:
                    assert wrong(one, found) < 0.02
            if one.truth != "limit":
                assert many.get(one.truth, 0.0) > max(0.5, few.get(one.truth, 0.0) - 0.01)


def test_p_values_and_corrections_are_those_of_the_tables() -> None:
    """The 15 p-values are the example of Benjamini and Hochberg 1995, who keep four, and Holm's three."""
    for freedom, quantile in enumerate(T95, 1):
        assert p_value(quantile, 1.0, freedom) == pytest.approx(0.05, rel=5e-3)
    assert (p_value(0.0, 0.0, 4), p_value(1.0, 0.0, 4)) == (1.0, 0.0)
    assert sign_test(9, 10) == pytest.approx(11 / 1024)
    example = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324, 0.4262,
               0.5719, 0.6528, 0.759, 1.0]  # fmt: skip
    assert benjamini_hochberg(example) == [True] * 4 + [False] * 11
    assert holm(example[::-1]) == [False] * 12 + [True] * 3
    assert benjamini_hochberg([0.9]) == holm([0.9]) == [False]


def test_the_interval_of_many_seeds_is_student_s() -> None:
    """As in the expansion of Student's quantile in 1 / n (Abramowitz and Stegun, 26.7.5)."""
    for table, share in ((T95, 0.975), (T90, 0.95)):
        z = NormalDist().inv_cdf(share)
        for n, quantile in enumerate(table, start=1):
            near = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
            near += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
            assert n < 10 or quantile == pytest.approx(near, abs=6e-4)
        assert len(table) == MAX_SWEEP_SEEDS - 1 and list(table) == sorted(table, reverse=True)
    for n, quantile in ((MAX_SWEEP_SEEDS, T95[-1]), (2 * MAX_SWEEP_SEEDS, 1.98422)):
        found = interval([1.0, 2.0] * (n // 2))
        deviation = 0.5 * math.sqrt(n / (n - 1))
        assert found is not None and found.n == n
        assert found.high - 1.5 == pytest.approx(quantile * deviation / n**0.5, rel=1e-5)


def test_numbers_in_words_say_their_seeds() -> None:
    assert value_sentence([1.0, 3.0, 2.0], ".1f") == "2.0 (1.0 to 3.0, 3 seeds)"
    assert value_sentence([192.0] * 3, ".0f") == "192 (3 seeds)"
    assert value_sentence([1.0], ".1f") == "1.0 (1 seed)"
    assert value_sentence([math.nan, 1.0], ".1f") == "not a number (2 seeds)"
    assert value_sentence([40.0, math.inf, 60.0], ".0f") == "60 (40 to not reached, 3 seeds)"
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


def from_store(store: Store, claim: Claim) -> ClaimResult | None:
    """The result of the runs that the store has, shipped ones too; None where one is missing or a lab
    measures it."""
    runs = results_in(store, claim.cells())
    if claim.lab or len(runs) < len(claim.cells()):
        return None
    cells = {cell.key: CellResult(cell, store.recording(run)) for cell, run in runs.items()}
    return result_of(claim, cells, claim.seeds, 0.0)


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_claim_is_run_once_and_read_again(store: Store, tmp_path: Path) -> None:
    assert from_store(store, SMALL) is None
    store.keep_all([measure(cell.config) for cell in SMALL.cells()], "shipped sweep")
    stored = from_store(store, SMALL)
    assert stored is not None
    result, news = finished(store, SMALL)
    assert len([one for one in news if isinstance(one, Done)]) == 12, "what ships was not run here"
    assert result.numbers == stored.numbers
    assert result.seeds == 3 and len(result.runs) == 12
    assert result.verdict(SMALL).outcomes == "tf"
    assert result.verdict(SMALL).sentence == "holds in part (1 of 2 parts true, 1 false)"
    assert all(len(values) == 3 for values in result.numbers.values())
    words = explained(SMALL, result)
    assert words.startswith("Slow ends at 3.") and words.endswith("over 3 seeds, with their range.")
    again, news = finished(store, SMALL)
    assert all(isinstance(one, Reused) for one in news)
    assert again.numbers == result.numbers

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


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_claim_of_a_lab_is_measured(store: Store) -> None:
    result, news = finished(store, COUNTED)
    assert len(news) == 3 and result.runs == []
    assert result.numbers == {"norms": [4.0, 4.0, 4.0]}
    assert result.verdict(COUNTED).kind == "holds"
    assert len(picture(chart(drawn(COUNTED, result)), "svg")) > 2000
    assert from_store(store, COUNTED) is None


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_rates_are_chosen_on_other_seeds_than_those_that_judge(store: Store) -> None:
    result, news = finished(store, TUNED, first=7)
    assert result.first == 7
    trained = {cell.config for cell in TUNED.cells(first=7)}
    assert {one.data_seed for one in trained} == {7, 8, 9} and len(trained) == 6
    assert {one.init_seed - one.data_seed for one in trained} == {0}
    assert len([one for one in news if isinstance(one, Done)]) == 6
    assert result.numbers["pre_rate"] == [0.03] * 3
    judges = [cell for cell in TUNED.cells(first=7) if cell.config.lr == 0.03][:3]
    held = [store.recording(next(store.results(cell.key))).held_out for cell in judges]
    assert sorted(result.numbers["pre"]) == pytest.approx(sorted(held))
    assert result.numbers["pre at 0.03"] == result.numbers["pre"] < result.numbers["pre at 0.0001"]


def test_a_rate_is_the_best_of_all_other_seeds_and_an_interval_includes_the_choice() -> None:
    tried = {"pre at 0.0001": [1.0, 2.0, 2.0, 2.0], "pre at 0.03": [1.9, 1.9, 1.9, 3.0]}
    numbers = filled(TUNED, tried)
    assert numbers["pre_rate"] == [0.0001, 0.0001, 0.0001, 0.0001]
    assert filled(TUNED, {**tried, "pre at 0.03": [1.5, 1.5, 1.5, 3.0]})["pre_rate"] == [
        0.0001, 0.0001, 0.0001, 0.03,
    ]  # fmt: skip
    check = Between("pre", high=2)
    alone, with_choice = check.judge(numbers), check.judge(numbers, redrawn(TUNED, numbers))
    assert alone.outcome == with_choice.outcome == "undecided" and alone != with_choice


def test_a_number_at_the_rate_of_another_has_that_ones_rate() -> None:
    like = at_rate_of("pre", "pre", "Pre-LN", FINAL)
    claim = replace(TUNED, numbers={**TUNED.numbers, "train": like})
    held = {"pre at 0.0001": [1.0, 2.0, 2.0], "pre at 0.03": [3.0, 1.0, 1.0]}
    ends = {"train at 0.0001": [0.1, 0.2, 0.3], "train at 0.03": [0.4, 0.5, 0.6]}
    assert set(claim.read) == {*held, *ends}
    numbers = filled(claim, {**held, **ends})
    assert numbers["pre_rate"] == [0.03, 0.0001, 0.0001], "where its own is least at 0.0001 in all"
    assert numbers["train"] == [0.4, 0.2, 0.3]


def test_how_far_a_seed_lies_from_the_others_is_from_the_median_of_all() -> None:
    claim = replace(SMALL, numbers={**SMALL.numbers, "apart": Number("apart", Apart("slow"))})
    assert "apart" not in claim.read
    read = {name: [1.0, 5.0, 2.0] for name in claim.read}
    assert filled(claim, read)["apart"] == [1.0, 3.0, 0.0]


@pytest.mark.usefixtures("here")
def test_a_claim_that_chooses_rates_needs_two_seeds(store: Store) -> None:
    with pytest.raises(ClaimError, match="give it 2 seeds or more"):
        list(run(store, TUNED, seeds=1))


def test_a_run_that_still_falls_is_read_as_if_it_came_down_to_the_floor() -> None:
    config = RunConfig(steps=40, depth=1)
    cell = ended_at_3(config, falling=True)
    assert FINAL.of(cell) == pytest.approx(3.0) and not trains(cell)
    assert FINAL.of(cell.fallen()) == 1.1 and trains(cell.fallen())
    flat = ended_at_3(config, falling=False)
    by_plan = ended_at_3(config.replace(schedule="linear"), falling=True)  # its rate is zero
    assert by_plan.point.falling and not flat.point.falling
    assert flat.fallen() is flat and by_plan.fallen() is by_plan


def ended_at_3(config: RunConfig, falling: bool) -> CellResult:
    """A run whose loss ends at 3 nats, a tenth of the way from chance to the floor."""
    losses = 3.0 + falling * 0.02 * (37.5 - np.arange(40))
    steps = Steps.of([Step(i, x, 1e-3, 1.0, None) for i, x in enumerate(losses)], config.depth)
    started = Started(config, "cpu", 1, 9, 3.3, 1.1, None)
    return CellResult(Cell(config, (), 0), Recording(config, started, "finished", steps=steps))


def test_a_result_counts_the_runs_of_each_engine(store: Store, tmp_path: Path) -> None:
    for cell in SMALL.cells():
        kept(store, cell.config, steps=cell.config.steps)
    store.db.connection.execute("UPDATE runs SET engine = 'tape' WHERE id > 2")
    result = from_store(store, SMALL)
    assert result is not None
    assert sorted(result.engines) == ["eager"] * 2 + ["tape"] * 10
    write(result, tmp_path / "now.json")
    now = read_file(tmp_path / "now.json")
    assert now.engines == result.engines
    assert now.fits(SMALL)
    assert not any(replace(now, engine=ENGINE + by).fits(SMALL) for by in (-1, 1))


def test_a_stopped_claim_has_no_result(store: Store) -> None:
    assert not [one for one in run(store, SMALL, processes=1, stop=lambda: True)
                if isinstance(one, ClaimResult)]  # fmt: skip
    assert not [
        one for one in run(store, COUNTED, stop=lambda: True) if isinstance(one, ClaimResult)
    ]


@pytest.mark.usefixtures("here")
def test_the_time_of_a_claim_is_what_its_faster_set_of_seeds_took() -> None:
    """An estimate of its runs was off by up to two thirds."""
    claim, sets = CLAIMS["E18"], shipped_sets(CLAIMS["E18"])
    assert [core_seconds(claim, [one]) for one in sets] == pytest.approx([s.seconds for s in sets])
    assert core_seconds(claim, sets) == pytest.approx(min(one.seconds for one in sets))
    assert core_seconds(claim, sets, 4) < core_seconds(claim, sets)
    assert core_seconds(claim, []) == claim.estimated_seconds()
    assert expected(claim, sets, None, 2) == pytest.approx(
        LOAD_SECONDS + core_seconds(claim, sets) / 2
    )


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_run_that_fails_is_said(store: Store) -> None:
    arm = {**SMALL.arms["slow"], "task": "text", "text": "a" * 32}
    broken = Claim("T3", "", "", "", {"slow": arm, "fast": arm}, SMALL.numbers, SMALL.rule, "",
                   SMALL.figure)  # fmt: skip
    with pytest.raises(ClaimError, match=r"T3 has no result: .*this server does not have"):
        list(run(store, broken, processes=1))


def test_a_claim_about_the_census_trains_nothing(store: Store) -> None:
    for claim in (CLAIMS[f"M{n}"] for n in range(1, 5)):
        with case(claim.key):
            counted(store, claim)


def counted(store: Store, claim: Claim) -> None:
    (result,) = run(store, claim, seeds=2, first=100)
    assert isinstance(result, ClaimResult) and from_store(store, claim) is not None
    assert not store.db.connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0]
    assert (shipped_lanes(claim), claim.cells(), result.runs) == ((), (), [])
    assert expected(claim, shipped_sets(claim), None, 2) == claim.estimated_seconds() == 0
    assert claim.scope == f"language models of transformers {census().transformers}"
    shipped = shipped_result(claim)
    assert shipped is not None
    for name, values in shipped.numbers.items():
        now = result.numbers[name][:1]
        assert now == pytest.approx(values, rel=1e-4), "the census changed: normviz ship-claims"
    assert "seed" not in explained(claim, shipped) + basis(claim, shipped)
    assert "seed" not in "".join(number_sentences(claim, shipped).values())


def test_the_counts_of_modern_decoders_are_those_of_the_table() -> None:
    modern = [m for m in census().models if m.kind == "decoder" and m.year and m.year >= 2023]
    result = shipped_result(CLAIMS["M1"])
    assert result is not None
    parts = {
        name: result.numbers[name][0] for name in ("pre", "both", "after", "one", "rest", "open")
    }
    assert sum(parts.values()) == result.numbers["all"][0] == len(modern)
    assert parts["pre"] == len([m for m in modern if m.placement == "pre"])
    most = parts["pre"] + parts["open"]
    assert result.numbers["most"][0] == pytest.approx(100 * most / len(modern), rel=1e-4)


def test_only_the_most_frequent_placement_that_undecided_rows_cannot_change_is_a_lead() -> None:
    stacks = [
        Model("a", placement=key) for key in (*["pre"] * 9, *["post"] * 5, "peri", "sandwich", None)
    ]
    assert lead(stacks) == 9 - 2 - 1
    assert lead([*stacks, *[Model("b")] * 7]) == -1


# The records


def test_seeds_of_the_same_placements_do_not_make_their_correlation_surer() -> None:
    claim, found = CLAIMS["C13"], shipped_result(CLAIMS["C13"])
    assert found is not None and found.verdict(claim).kind == "undecided"
    again = {**found.numbers, "r": [*found.numbers["r"]] * 8}
    assert judge(claim.rule, again) == found.verdict(claim)
    assert "Each seed trains the same eight placements" in explained(claim, found)


def test_a_scope_has_the_sizes_of_the_runs() -> None:
    scopes = [CLAIMS[key].scope for key in ("C3", "C5")]
    assert scopes == [
        "Xavier, Markov chain, depth 6 to 96, width 64, before training",
        "Xavier, Markov chain, depth 10, width 32, within 800 steps",
    ]


def test_held_out_tokens_are_those_of_runs_that_train() -> None:
    assert any(cell.config.steps == 0 for cell in CLAIMS["C17"].cells(1))
    assert held_out_tokens(CLAIMS["C17"]) == {4096}


@pytest.mark.slow
def test_every_record_is_whole() -> None:
    for claim in CLAIMS:
        with case(claim.key):
            whole(claim)


def whole(claim: Claim) -> None:
    assert claim.seeds >= 3 or not claim.arms
    assert claim.sentence.endswith(".") and claim.source and claim.label
    assert len({claim.arm_label(arm) for arm in claim.arms}) == len(claim.arms), (
        "a figure names each arm"
    )
    assert 1 <= len(shipped_lanes(claim)) <= 4 or not claim.arms
    assert not claim.lab or all(lane.steps > 0 for lane in shipped_lanes(claim)), (
        "no run is at step 0"
    )
    named = set(re.findall(r"\{(\w+)\}", claim.words))
    assert named <= set(claim.numbers)
    for sentence in claim.rule_words():
        assert ": " in sentence
    if isinstance(claim.figure, Strip):
        assert set(claim.figure.names) <= set(claim.numbers)
    else:
        assert not claim.lab or isinstance(claim.figure, Curve)
    configs = [cell.config for cell in claim.cells(1)]
    if isinstance(claim.figure, Layers):
        assert claim.figure.probe in PROBES
        assert all(claim.figure.step in (-1, *coarse(config)) for config in configs)
    types_no_result(claim, configs)


def types_no_result(claim: Claim, configs: list[RunConfig]) -> None:
    """A claim's words hold its settings as digits, and everything measured as a name."""
    settings = {"1", "0", "2", "3", "4"}  # 1/sqrt(2L), W2, SGD and such
    values = {v for config in configs for v in config.model_dump().values()}
    settings |= {f"{v:g}" for v in values if isinstance(v, int | float)}
    settings |= set(re.findall(r"\d+(?:\.\d+)?", claim.sentence + str(claim.rule_words())))
    settings |= {str(claim.seeds)}
    plain = re.sub(r"\{\w+\}|\b[CEMX]\d+\b", "", claim.words)
    typed = set(re.findall(r"\d+(?:\.\d+)?", plain)) - settings
    assert typed <= KNOWN.get(claim.key, set())


@pytest.mark.slow
def test_a_claim_s_duel_has_runs_of_its_arms_at_the_rates_that_were_chosen() -> None:
    for claim in CLAIMS:
        if claim.arms:
            with case(claim.key):
                shows_its_runs(claim)


def shows_its_runs(claim: Claim) -> None:
    key, result = claim.key, shipped_result(claim)
    assert result is not None
    chosen = {
        f"{name}_rate": (tuned.arm, tuned.where)
        for name, tuned in claim.tuned.items()
        if not tuned.like
    }
    for lane in shipped_lanes(claim):
        cells = [(arm, cell.config) for arm in claim.arms for cell in claim.grid(arm, 1).cells]
        if claim.lab:  # at step 0; the duel trains what it measured
            cells = [(arm, it.replace(steps=it.steps or lane.steps)) for arm, it in cells]
        own = [arm for arm, config in cells if config == lane]
        assert own, f"no run of the record is {lane}"
        rates = [
            result.numbers[name][0]
            for name, (arm, where) in chosen.items()
            if arm in own and fits(lane, where)
        ]
        assert bool(rates) == bool(chosen)
        assert key in OTHER_RATE or not chosen or lane.lr in rates
    assert ("The duel shows" in claim.words) == (key in OTHER_RATE)


OTHER_RATE = {"C14", "C16", "E28"}
"""Claims whose duel does not show the rates at which losses were compared. Their paragraphs say why."""


def test_a_duel_follows_the_rates_of_another_result() -> None:
    claim, result = CLAIMS["C40"], shipped_result(CLAIMS["C40"])
    assert result is not None
    rates = {"none4": 0.003, "layer4": 0.001, "none32": 0.01, "layer32": 0.003}
    numbers = {**result.numbers, **{f"{name}_rate": [lr] * 5 for name, lr in rates.items()}}
    lanes = claim.lanes(numbers)
    assert [(lane.scheme, lane.seq_len, lane.lr) for lane in lanes] == [
        ("cell_none", 4, 0.003), ("pre_activation", 4, 0.001),
        ("cell_none", 32, 0.01), ("pre_activation", 32, 0.003),
    ]  # fmt: skip


KNOWN = {
    "C2": {"1.25"},  # of the embedding: N(0, 1) and N(0, 0.25)
    "C5": {"3.32"},  # chance of the Markov task
    "C6": {"0.01", "0.001"},  # the lab's rates
    "C8": {"1.4"},  # ln 96 / ln 24
    "C9": {"3.32"},  # chance of the Markov task
    "C12": {"128"},  # sequences that judge
    "C18": {"512"},  # tokens: 8 sequences of 64
    "C21": {"64"},  # bits
    "C22": {"0.02", "0.1"},  # the lab's standard deviations
    "C19": {"0.5"},  # where DyT's alpha starts
    "C15": {"2.83"},  # what bounds its logits
    "C25": {"3.32"},  # chance of the Markov task
    "C24": {"1.25", "1.11"},  # the goal and the floor
    "C27": {"1000"},  # layers of the paper's models
    "C43": {"500"},  # images in the graph
    "C45": {"7"},  # pairs of 8 blocks
    "C48": {"1.25"},  # the goal
    "E3": {"3.32"},  # chance of the Markov task
    "E7": {"1.5"},  # between two rates
    "E9": {"3.32"},  # chance of the Markov task
    "E10": {"3.32"},  # chance of the Markov task
    "E13": {"24"},  # branches of 12 blocks
    "E21": {"128"},  # sequences that judge
    "E22": {"0.10"},  # the mean of 1/2 to 1/32
    "E23": {"0.5"},  # Derf's start
    "E24": {"1.6"},  # 9 to the power of the rule's 0.2
    "X1": {"0.5", "13", "30"},  # an AUC of chance
    "X2": {"1.2", "0.102", "0.072"},  # between two values of c, and 1/sqrt(2L)
    "X3": {"1.2", "0.6"},  # between two rates, and steps times a rate
    "X4": {"1.5"},  # between two rates
    "X6": {"30", "38"},  # steps at which it measures, Adam's edge
    "M2": {"1.1"},  # a version
    "M3": {"7", "40", "180"},  # billions of parameters
}
"""What is no setting of the record and no result either."""


# What ships


@pytest.mark.slow
def test_a_shipped_result_is_of_this_rule() -> None:
    for claim in CLAIMS:
        with case(claim.key):
            result = shipped_result(claim)
            assert result is not None, "its rule or its numbers changed: run it again"
            assert result.seeds == 2 * claim.seeds >= 6 or not claim.arms
            assert all(len(values) == result.seeds for values in result.numbers.values())
            words = explained(claim, result)
            assert "{" not in words and len(words) > 60
            chart(linked(claim, result))
            figure_is_of_the_record(claim, result)


def figure_is_of_the_record(claim: Claim, result: ClaimResult) -> None:
    """Its names, and one value a seed: a curve that pooled another setting, as rates or warm-up, would show
    values that no run has."""
    for each in result.figure:
        is_strip = isinstance(claim.figure, Strip)
        name = claim.numbers[each.arm].label if is_strip else claim.arm_label(each.arm)
        assert each.label == name
        if isinstance(claim.figure, Curve):
            assert {len(y) for y in each.y} == {len(figure_seeds(claim, result))}


@pytest.mark.slow
def test_a_point_of_a_figure_opens_its_run() -> None:
    """Of a scatter, a curve over a setting, a curve over layers, and a strip that names its runs; a count
    has none."""
    points = {key: list(_points(key)) for key in ("X2", "E7", "C2")}
    kinds = {row["kind"] for row in _drawn("X2")["datasets"]["seeds"]}
    assert kinds == {"learning rate 0.003", "learning rate 0.01"}, "a shape for each"
    assert [len(found) for found in points.values()] == [165, 160, 97 * 20], "of the first set"
    assert all((run.depth, run.branch_gain) == (x, y) for _, x, y, _, run in points["X2"])
    assert all(
        (run.scheme, run.lr, run.data_seed) == (one, x, seed)
        for one, x, _, seed, run in points["E7"]
    )
    assert {(run.depth, run.init_seed - seed) for *_, seed, run in points["C2"]} == {(96, 0)}
    counted = shipped_result(CLAIMS["E15"])
    assert counted is not None and not has_links(linked(CLAIMS["E15"], counted))


def test_a_strip_shows_the_interval_of_each_row_and_names_what_differs() -> None:
    spec = _drawn("X3")
    bars = {row["arm"]: (row["low"], row["high"]) for row in spec["datasets"]["intervals"]}
    assert list(bars) == ["Post-LN", "Pre-LN", "Peri-LN", "DeepNorm", "Pre-LN, branches / L"]
    ships = shipped_result(CLAIMS["X3"])
    assert ships is not None and (it := interval(ships.numbers["post"])) is not None
    assert bars["Post-LN"] == pytest.approx((it.low, it.high), rel=1e-4)
    assert {row["arm"] for row in spec["datasets"]["seeds"]} == set(bars)
    (colors,) = (
        it["encoding"]["color"]["scale"] for it in spec["layer"] if "color" in it["encoding"]
    )
    placements = [scheme_style(key).color for key in ("post", "pre", "peri", "deepnorm")]
    assert [*zip(colors["domain"], colors["range"], strict=True)][:4] == [
        *zip(bars, placements, strict=False)
    ]
    lifetimes = _drawn("X5")["datasets"]
    arms = {name: {row["arm"] for row in rows} for name, rows in lifetimes.items()}
    assert arms["seeds"] - arms["intervals"], "some runs do not get there"
    assert arms["seeds"] - arms["medians"] <= arms["seeds"] - arms["intervals"]
    assert _drawn("M1")["datasets"]["intervals"] == []
    over_placements = _drawn("C13")["datasets"]["intervals"]
    of_both_rates = next(row for row in _drawn("X4")["datasets"]["intervals"] if "2 " in row["arm"])
    for key, row in (("C13", over_placements[0]), ("X4", of_both_rates)):
        found = shipped_result(CLAIMS[key])
        assert found is not None
        evidence = found.verdict(CLAIMS[key]).parts[0].judgement.evidence
        assert f"({row['low']:.3g} to {row['high']:.3g}, " in evidence, "the rule's own interval"


def _drawn(key: str) -> dict[str, Any]:
    result = shipped_result(CLAIMS[key])
    assert result is not None
    return chart(linked(CLAIMS[key], result))


def _points(key: str) -> Iterator[tuple[str, float, float, int, RunConfig]]:
    result = shipped_result(CLAIMS[key])
    assert result is not None
    figure = linked(CLAIMS[key], result)
    rows = iter(chart(figure)["datasets"]["seeds"])
    assert all(row["link"].startswith("./?v=1&") for row in rows)
    for one in figure.points:
        for x, ys, links in zip(one.x, one.y, one.links, strict=True):
            for seed, (y, link) in enumerate(zip(ys, links, strict=True)):
                (run,) = decode(link).lanes
                yield one.scheme, x, y, seed, run


def test_each_set_of_seeds_is_of_this_rule_and_of_its_own_seeds() -> None:
    for claim in CLAIMS:
        if claim.arms:
            with case(claim.key):
                sets = shipped_sets(claim)
                expected_sets = [(0, claim.seeds), (100, claim.seeds)]
                assert [(one.first, one.seeds) for one in sets] == expected_sets, (
                    "its rule or its numbers changed: normviz ship-claims, and with --seeds-from 100"
                )
                vary = any(len(set(values)) > 1 for values in sets[0].numbers.values())
                assert sets[0].numbers != sets[1].numbers or not vary, "other seeds, other numbers"


def test_what_checks_a_claim_is_of_its_rule_and_of_seeds_that_do_not_judge() -> None:
    checked = sorted(path.stem for path in (folder() / "third").glob("*.json"))
    assert checked
    for key in checked:
        check = shipped_check(CLAIMS[key])
        assert check is not None, f"{key} changed: normviz ship-claims {key} --seeds-from 200"
        assert (check.first, check.seeds) == (200, CLAIMS[key].seeds)


def test_the_seeds_of_two_sets_make_one_result() -> None:
    claim, sets = CLAIMS["X3"], shipped_sets(CLAIMS["X3"])
    result = pooled(claim, sets)
    assert result.seed_list == [*range(3), *range(100, 103)] and result.seeds == 6
    assert result.numbers["post4"] == [*sets[0].numbers["post4"], *sets[1].numbers["post4"]]
    drawn_points = linked(claim, result).points[0]
    assert list(drawn_points.y[0]) == result.numbers["post"]
    seeds = [{lane.data_seed for lane in decode(link).lanes} for link in drawn_points.links[0]]
    assert seeds == [{seed} for seed in result.seed_list]
    fell = replace(sets[0], fallen={"post4": [9.0] * 3})
    assert pooled(claim, [fell, sets[1]]).fallen["post4"] == [9.0] * 3 + list(
        sets[1].numbers["post4"]
    )
    assert pooled(claim, sets[:1]) is sets[0]


def test_the_verdict_of_all_seeds_may_be_that_of_no_set_alone() -> None:
    claim, sets = CLAIMS["X3"], shipped_sets(CLAIMS["X3"])
    found = [(split.sets, split.together.outcome) for split in splits(claim, sets)]
    assert found == [(("undecided", "undecided"), "true")]
    assert [one.verdict(claim).kind for one in sets] == ["undecided", "undecided"]
    assert pooled(claim, sets).verdict(claim).kind == "holds"
    assert splits(CLAIMS["C9"], shipped_sets(CLAIMS["C9"])) == []


def test_a_card_states_no_less_time_than_its_runs_took() -> None:
    claim = CLAIMS["C24"]
    (result,) = filter(None, [shipped_result(claim)])
    assert result.seconds > sum(claim.estimated_seconds(n) for _, n in result.sets)
    assert f"at most about {duration(result.seconds)} of one core" in basis(claim, result)


def test_a_rate_that_was_chosen_twice_is_said_twice() -> None:
    claim, result = CLAIMS["C29"], shipped_result(CLAIMS["C29"])
    assert result is not None
    rates = {**result.numbers, "hyper_rate": [0.004] * 5 + [0.032] * 5}
    words = number_sentences(claim, replace(result, numbers=rates))
    assert words["hyper_rate"] == "0.004 and 0.032"


def test_the_list_of_changed_verdicts_is_that_of_the_results() -> None:
    """`assets/claims/README.md`: before 27 November and now, and why a verdict changed that is there."""
    words = (folder() / "README.md").read_text()
    now = {claim.key: chip(claim, shipped_result(claim)) for claim in CLAIMS}
    table = words[words.index("| claim | about | before | now | third set |") :]
    rows = re.findall(r"^\| (\w+) \| (.+) \| (.+) \| (.+) \| (.*) \| (.*) \|$", table, re.MULTILINE)
    assert [row[0] for row in rows[1:]] == [claim.key for claim in CLAIMS]
    for key, about, before, after, third, why in rows[1:]:
        assert (about, after) == (CLAIMS[key].label, now[key])
        check = shipped_check(CLAIMS[key])
        assert third == (chip(CLAIMS[key], check) if check else "")
        assert why or before in (after, "new")


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_cheap_result_comes_out_again(store: Store) -> None:
    """Of a lab, which trains by eager; those of runs are what the runs give that ship."""
    claim = CLAIMS["C21"]
    shipped = shipped_result(claim)
    assert shipped is not None
    fresh, _ = finished(store, claim, seeds=1)
    assert fresh.engine == ENGINE and set(fresh.numbers) == set(shipped.numbers)
    for name, values in shipped.numbers.items():
        assert fresh.numbers[name] == pytest.approx(values[:1], rel=0.02, abs=1e-9), name


@pytest.mark.slow
def test_no_caption_contradicts_a_stored_run() -> None:
    """Every number of a result whose runs all ship is what those runs give."""
    cells = {claim.key: claim.cells() for claim in CLAIMS if claim.arms and not claim.lab}
    runs = {
        run.key: run for run in shipped_cells({one.key for some in cells.values() for one in some})
    }
    for path in (shipped("assets") / "runs").glob("*.npz"):
        runs |= {run.key: run for run in load(path)}
    checked = few = 0
    for claim in map(CLAIMS.__getitem__, cells):
        its = cells[claim.key]
        few += len(its) <= FEW and all(cell.config.depth < DEEP for cell in its)
        if any(cell.key not in runs for cell in its):
            continue
        checked += 1
        with case(claim.key):
            results = {cell.key: CellResult(cell, runs[cell.key]) for cell in its}
            from_runs, stored = result_of(claim, results, claim.seeds, 0.0), shipped_sets(claim)[0]
            for name, values in stored.numbers.items():
                expected = pytest.approx(values, rel=1e-4, abs=1e-9, nan_ok=True)
                assert from_runs.numbers[name] == expected, name
            assert from_runs.verdict(claim).outcomes == stored.verdict(claim).outcomes
    assert checked >= few > 10
