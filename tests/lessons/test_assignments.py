"""Assignments: the doctor finds the planted bugs, and only them; predictions are held against verdicts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from normviz.lessons.assignments import ASSIGNMENTS, FINDINGS, OUTCOMES, BugHunt, Experiment
from normviz.own_model import doctor
from normviz.own_model.anatomy import inspect_named

HUNTS = [each for each in ASSIGNMENTS if isinstance(each, BugHunt)]
EXPERIMENTS = [each for each in ASSIGNMENTS if isinstance(each, Experiment)]


@pytest.mark.parametrize("hunt", HUNTS, ids=lambda hunt: hunt.key)
def test_the_doctor_finds_the_planted_bug_and_nothing_else(hunt: BugHunt, tmp_path: Path) -> None:
    path = tmp_path / hunt.file
    assert hunt.code.count(hunt.right) == 1 and hunt.finding in FINDINGS
    path.write_text(hunt.planted)
    (found,) = inspect_named(f"{path}:build", None).findings
    assert (found.name, str(found)) == (hunt.finding, hunt.says)
    path.write_text(hunt.code)
    assert inspect_named(f"{path}:build", None).findings == ()


def test_what_a_hunt_offers_are_findings_of_the_doctor() -> None:
    tree = ast.parse(Path(doctor.__file__).read_text("utf-8"))
    assert set(FINDINGS) <= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.key)
def test_the_runs_of_an_experiment_have_a_name_each(experiment: Experiment) -> None:
    lanes = [lane for group in experiment.groups() for lane in group]
    assert list(experiment.lanes.values()) == lanes
    assert len({lane.key for lane in lanes}) == len(lanes) and len(OUTCOMES) == 3
    assert all(lane.norm == "rmsnorm" and lane.activation == "swiglu" for lane in lanes)
