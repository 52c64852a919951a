"""Findings and sparks of the Claims page: each is of the result that ships, and of no other."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median
from xml.etree import ElementTree

import torch
from crossing_kit import case

from normviz import RunConfig
from normviz.charts import spark
from normviz.claims import CLAIMS, Claim
from normviz.claims.figure import drawn
from normviz.claims.record import QUESTIONS
from normviz.claims.stored import explained, finding, held_out_characters, shipped_result
from normviz.model.data import make_task


def test_every_claim_answers_a_question_with_the_outcomes_that_it_has() -> None:
    for claim in CLAIMS:
        with case(claim.key):
            result = shipped_result(claim)
            assert claim.question and claim.question in QUESTIONS
            assert result is not None
            assert claim.finding[0] == result.verdict(claim).outcomes
            said = finding(claim, result)
            assert said.endswith(".") and "{" not in said and "- " not in said


def test_the_limits_that_findings_state_are_those_of_their_experiments() -> None:
    assert {cell.config.lr for cell in CLAIMS["E2"].cells()} == {0.001}
    assert {cell.config.depth for cell in CLAIMS["X2"].cells()} == {6, 12, 24, 48}
    assert {key: held_out_characters(CLAIMS[key]) for key in ("E7", "X4", "C12", "E22", "C1")} == {
        "E7": 256, "X4": 256, "C12": 0, "E22": 0, "C1": 0,
    }  # fmt: skip
    tasks = [make_task(RunConfig(task="prose_split", data_seed=seed)) for seed in (0, 107)]
    first, second = (it.held_out_tensors(torch.device("cpu")) for it in tasks)
    assert first is not None and second is not None
    assert first[0].numel() == 256 and torch.equal(first[0], second[0])
    for key in ("E7", "X4", "E11"):
        result = shipped_result(CLAIMS[key])
        assert result is not None
        assert "are of the same 256 characters in every seed" in explained(CLAIMS[key], result)


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
