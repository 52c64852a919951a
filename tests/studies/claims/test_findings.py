"""Findings and sparks of the Claims page: each is of the result that ships, and of no other."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median
from xml.etree import ElementTree

from crossing_kit import case

from normviz.charts import spark
from normviz.studies.claims import CLAIMS, Claim
from normviz.studies.claims.figure import drawn
from normviz.studies.claims.record import QUESTIONS
from normviz.studies.claims.stored import finding, shipped_result


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
