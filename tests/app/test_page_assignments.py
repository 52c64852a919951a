"""The Assignments page without a browser: predictions before results, the file to hand in, the bug hunts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from backend_kit import keep
from normviz.app.views.assignments import experiment as experiment_page
from page_kit import checked, view_at, words_of
from streamlit.testing.v1 import AppTest

from normviz import RunConfig
from normviz.lessons.assignments import ASSIGNMENTS, BugHunt, Experiment
from normviz.runs.store import Store

pytestmark = pytest.mark.slow

LANE = RunConfig(depth=1, width=16, heads=2, seq_len=8, batch=4, steps=30, lr=0.03)


def opened(key: str) -> AppTest:
    return checked(view_at("assignments", {"assignment": [key]}))


def texts(at: AppTest) -> str:
    return "\n".join(words_of(one) for kind in ("markdown", "caption") for one in getattr(at, kind))


def test_the_list_leads_to_each_assignment(folder: Path) -> None:
    at = checked(view_at("assignments", {}))
    for each in ASSIGNMENTS:
        checked(at.button(key=f"open_{each.key}").click().run())
        assert "".join(at.query_params["assignment"]) == each.key
        assert f"# {each.label}" in texts(at)
        checked(at.button(key="open_all").click().run())
        assert not at.query_params and "# Assignments" in texts(at)
    at = checked(view_at("assignments", {"assignment": ["ablation"]}))
    assert "Did you mean 'ablations'?" in words_of(at.error[0]) and at.button(key="open_ablations")


def test_an_experiment_is_predicted_trained_explained_and_handed_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ASSIGNMENTS["ablations"]
    assert isinstance(whole, Experiment)
    small = replace(whole, groups=lambda: ((LANE, LANE.replace(scheme="post")),))
    monkeypatch.setitem(ASSIGNMENTS._records, "ablations", small)
    made: dict[str, Any] = {}
    monkeypatch.setattr(
        experiment_page, "download",
        lambda label, make, name, kind, ready, **more: made.update(make=make, name=name, ready=ready),
    )  # fmt: skip
    store = Store(folder)
    keep(store, LANE, "here")  # of another visitor: it is not shown before the predictions
    at = opened("ablations")
    assert "learned" not in texts(at) and len(at.radio) == 2
    at.radio[0].set_value("learns")
    checked(at.button(key="predict").click().run())
    assert "Nothing is predicted of Post-LN, learning rate 0.03 yet" in at.error[0].value
    assert not store.db.connection.execute("SELECT 1 FROM runs WHERE status = 'queued'").fetchone()
    at.radio[1].set_value("fails")
    checked(at.button(key="predict").click().run())
    (row,) = store.db.connection.execute("SELECT * FROM runs WHERE status = 'queued'").fetchall()
    assert (row["key"], row["origin"]) == (LANE.replace(scheme="post").key, "sweep")
    assert not at.radio and "| Post-LN, learning rate 0.03 | fails | not trained yet |" in texts(at)
    assert not made
    checked(at.button(key="stop_assignment").click().run())
    checked(at.button(key="train_assignment").click().run())
    keep(store, LANE.replace(scheme="post"), "sweep")
    checked(at.run())
    assert "of 2 predicted.**" in texts(at) and not made["ready"]
    checked(at.text_area[0].set_value("Since the norm is there.").run())
    checked(at.text_input(key="student").set_value("Ada L.").run())
    assert made["ready"] and made["name"] == "ablations-Ada-L.json"
    file = json.loads(made["make"]())
    assert (file["student"], file["answer"]) == ("Ada L.", "Since the norm is there.")
    assert [run["predicted"] for run in file["runs"]] == ["learns", "fails"]
    assert [run["config"]["scheme"] for run in file["runs"]] == ["pre", "post"]
    assert all(
        len(run["losses"]) == LANE.steps and run["computed"]["engine"] for run in file["runs"]
    )


@pytest.mark.parametrize("key", [each.key for each in ASSIGNMENTS if isinstance(each, BugHunt)])
def test_a_hunt_says_whether_the_guess_is_right_and_has_its_solution(
    folder: Path, key: str
) -> None:
    hunt = ASSIGNMENTS[key]
    assert isinstance(hunt, BugHunt)
    at = opened(key)
    assert at.code[0].value == hunt.planted.strip() != hunt.code.strip()
    assert "Right" not in texts(at) and hunt.says in texts(at.expander[0])
    checked(at.radio[0].set_value("norm unused").run())
    assert "**Not quite.**" in texts(at)
    checked(at.radio[0].set_value(hunt.finding).run())
    assert "**Right.**" in texts(at)
