"""Findings and sparks of the Claims page: each is of the result that ships, and of no other."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from statistics import fmean, median
from xml.etree import ElementTree

from crossing_kit import case

from normviz.charts import spark
from normviz.studies.claims import CLAIMS, Claim
from normviz.studies.claims.figure import drawn
from normviz.studies.claims.record import QUESTIONS
from normviz.studies.claims.rule import Numbers, verdict_of
from normviz.studies.claims.sentences import late
from normviz.studies.claims.stored import finding, shipped_lanes, shipped_result


def test_every_claim_answers_a_question_with_the_outcomes_that_it_has() -> None:
    for claim in CLAIMS:
        with case(claim.key):
            result = shipped_result(claim)
            assert claim.question and claim.question in QUESTIONS
            assert result is not None
            assert claim.finding[0] == result.verdict(claim).outcomes
            said = finding(claim, result)
            assert said.endswith(".") and "{" not in said and "- " not in said


def test_a_finding_has_the_medians_of_its_result() -> None:
    claim = CLAIMS["C9"]
    result = shipped_result(claim)
    assert result is not None
    middle = median(result.numbers["admin48"])
    assert f"Admin ends at {middle:.2f} nats" in finding(claim, result)
    other = replace(result, numbers={**result.numbers, "admin48": [1.5] * 5})
    assert "Admin ends at 1.50 nats" in finding(claim, other)


def test_what_is_said_without_a_number_is_so() -> None:
    numbers = {key: shipped_numbers(key) for key in ("C24", "C41", "C43", "E23", "E28", "X5")}
    assert {*numbers["C24"]["ngpt at 0.04"], *numbers["C24"]["ngpt at 0.32"]} == {math.inf}
    assert (
        max(numbers["E23"]["derf_gap_adamw"]) < 0.005
        and fmean(numbers["E23"]["derf_gap_adamw"]) < 0
    )
    apart = shipped_numbers("E29")["post_apart"]
    assert sorted(apart)[-1] > 2 * sorted(apart)[-2], "one seed is far off"
    batch = shipped_numbers("C42")
    assert sum(loss > 0.999 * math.log(10) for loss in batch["batchnorm2"]) == 8
    assert fmean(batch["gap128"]) < 0
    ends = {
        key: fmean(shipped_numbers("E13")[f"{key}_best"]) for key in ("sandwich", "pre", "post")
    }
    assert [round(ends["sandwich"] - ends[key], 3) for key in ("pre", "post")] == [0.005, -0.012]
    saved = shipped_numbers("C18")
    assert [round(-median(saved[name]), 1) for name in ("most", "least")] == [2.3, 5.4]
    assert max(saved["alone_most"]) < -100, "more than twice as long"
    trained = [loss < 2.21 for loss in shipped_numbers("C5")["post200_10"]]
    assert (sum(trained), len(trained)) == (2, 10)
    assert [lane.lr for lane in shipped_lanes(CLAIMS["E28"])] == [0.003, 0.003]
    assert min(sorted(numbers["E28"]["bare_3"])[1:]) > 0.99 * 3.319, "near chance"
    assert min(numbers["C41"]["post_loss"]) > 0.99 * math.log(10), "near chance"
    assert 1 < sum(loss > 0.999 * math.log(10) for loss in numbers["C43"]["none8"]) < 10, "some"
    for cell in (cell for arm in CLAIMS["X2"].arms for cell in CLAIMS["X2"].grid(arm, 1).cells):
        depth, rate, c = cell.config.depth, cell.config.lr, cell.config.branch_gain
        assert c > (2 * depth) ** -0.5 or (rate == 0.01 and depth > 24), "above 1/sqrt(2L)"
    for key in ("C29", "E5", "E10"):
        runs = [cell.config for cell in CLAIMS[key].cells(1)]
        assert {(run.warmup, run.schedule) for run in runs} == {(0, "constant")}, key
    left, back = numbers["X5"]["d10_left"], numbers["X5"]["d10_back"]
    returned = [b for steps, b in zip(left, back, strict=True) if math.isfinite(steps)]
    assert sum(back) == sum(returned) > len(returned) / 2, "most that left it came back"


def shipped_numbers(key: str) -> Numbers:
    result = shipped_result(CLAIMS[key])
    assert result is not None
    return result.numbers


def test_a_finding_names_no_rate_that_no_run_has() -> None:
    """The median of an even number of seeds may lie between two rates."""
    for claim in CLAIMS:
        result = shipped_result(claim)
        assert result is not None
        rates = {cell.config.lr for arm in claim.arms for cell in claim.grid(arm, 1).cells}
        for name in re.findall(r"\{(\w+)\}", claim.finding[1]):
            if claim.numbers[name].label.startswith("the largest rate that trains"):
                with case(f"{claim.key} {name}"):
                    assert median(result.numbers[name]) in {0.0, *rates}


def test_a_result_with_other_outcomes_shows_its_verdict_instead() -> None:
    claim = CLAIMS["C9"]
    result = shipped_result(claim)
    assert result is not None
    worse = {**result.numbers, "admin48": [5.0] * 5}
    said = "Admin stabilises Post-LN: holds in part (1 of 2 parts true, 1 false)."
    assert finding(claim, replace(result, numbers=worse)) == said


def test_a_spark_draws_the_figure_inside_its_picture() -> None:
    for claim in CLAIMS:
        with case(claim.key):
            inside(claim)


def inside(claim: Claim) -> None:
    result = shipped_result(claim)
    assert result is not None
    figure = drawn(claim, result)
    picture = ElementTree.fromstring(spark.svg(figure))
    dots = [
        (float(it.get("cx", "")), float(it.get("cy", ""))) for it in picture.iter() if it.get("cx")
    ]
    lines = [it.get("points", "").split() for it in picture.iter() if it.get("points")]
    placed = [tuple(map(float, point.split(","))) for line in lines for point in line]
    assert all(0 <= x <= spark.WIDTH and 0 <= y <= spark.HEIGHT for x, y in (*dots, *placed))
    if figure.is_strip:
        drawable = [y for one in figure.points for ys in one.y for y in ys if math.isfinite(y)]
        assert len(dots) == len([y for y in drawable if y > 0 or not figure.log_y])
    elif figure.is_scatter:
        assert len(dots) == sum(len(ys) for one in figure.points for ys in one.y)
        assert len(lines) == len(figure.lines)
    else:
        assert len(lines) == len(figure.points) + len(figure.lines)
        assert max(len(line) for line in lines) > 1
    assert spark.title(figure)


def test_a_card_says_what_verdict_it_would_have_without_what_was_said_late() -> None:
    """Controls, and that the parts are one statement, came when results were known."""
    for claim in CLAIMS:
        with case(claim.key):
            result = shipped_result(claim)
            assert result is not None
            verdict = result.verdict(claim)
            assert any(part.control for part in claim.rule) == bool(late(claim, result))
            if verdict_of(verdict.parts).kind != verdict.kind:
                assert verdict.kind == "contradicted" and "holds in part" in claim.changed
    result = shipped_result(CLAIMS["C17"])
    assert result is not None
    assert late(CLAIMS["C17"], result).endswith("were none, the verdict would be holds in part")


def test_who_says_a_claim_is_read_off_its_source() -> None:
    assert CLAIMS["E1"].everyday and not CLAIMS["E12"].everyday
