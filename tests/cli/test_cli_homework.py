"""Files that were handed in: trained again, edited, of another machine, and what is no such file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_kit import normviz

from normviz import RunConfig, train
from normviz.homework import TOLERANCE, hand_in
from normviz.lessons.assignments import ASSIGNMENTS, Experiment
from normviz.runs import collect

FAST = RunConfig(depth=1, width=16, heads=2, seq_len=8, batch=4, steps=30, lr=0.03)
LANES = (FAST, FAST.replace(scheme="post"))


@pytest.fixture(scope="module")
def written() -> str:
    """A file of an experiment with two tiny runs."""
    runs = {name: collect(train(lane, record=(0,))) for name, lane in tiny().lanes.items()}
    return hand_in(tiny(), "Ada\x1b[31m", "Because.\nSo.", dict.fromkeys(runs, "fails"), runs)


def tiny() -> Experiment:
    whole = ASSIGNMENTS["ablations"]
    assert isinstance(whole, Experiment)
    return replace(whole, groups=lambda: (LANES,))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASSIGNMENTS._records, "ablations", tiny())


@pytest.fixture
def edited(written: str, tmp_path: Path) -> Callable[..., Path]:
    """A file after a change of the first run's record, or of the whole."""

    def made(name: str, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> Path:
        whole = json.loads(written)
        change(whole["runs"][0], whole)
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(whole))
        return path

    return made


def test_files_are_trained_again_once_and_edits_show(edited: Callable[..., Path]) -> None:
    def elsewhere(run: dict[str, Any]) -> None:
        run["computed"]["processor"] = "another"
        run["losses"][3] += 1e-6

    def far(run: dict[str, Any]) -> None:
        elsewhere(run)
        run["losses"][-3:] = [loss - 2 * TOLERANCE for loss in run["losses"][-3:]]
        run["final_loss"] = sum(run["losses"][-3:]) / 3

    def word(run: dict[str, Any]) -> None:
        elsewhere(run)
        run["final_loss"] -= 0.01

    files = {
        "same": lambda run, whole: None,
        "loss": lambda run, whole: run["losses"].__setitem__(7, 1.0),
        "outcome": lambda run, whole: run.update(measured="fails", predicted="fails"),
        "settings": lambda run, whole: run["config"].update(depth=2),
        "fewer": lambda run, whole: whole["runs"].pop(),
        "elsewhere": lambda run, whole: elsewhere(run),
        "far": lambda run, whole: far(run),
        "word": lambda run, whole: word(run),
        "words": lambda run, whole: (elsewhere(run), run.update(losses="none")),
    }
    paths = {name: edited(name, change) for name, change in files.items()}
    result = normviz("homework", *map(str, paths.values()))
    assert result.exit_code == 1
    said = {
        name: result.stdout[result.stdout.index(str(path)) :].split("  predicted")[0]
        for name, path in paths.items()
    }
    assert "Three ablations\n  2 of 2 runs are the same bit for bit\n" in said["same"]
    assert "Ada\ufffd[31m, " in said["same"] and "answer: Because.⏎So." in result.stdout
    run = "differs: Pre-LN, learning rate 0.03: "
    assert f"{run}number 7 of its losses is '1.0' in the file and " in said["loss"]
    assert f"{run}measured is 'fails' in the file" in said["outcome"]
    assert f"{run}config depth is '2' in the file and '1' here" in said["settings"]
    assert "differs: it has 1 runs, the assignment has these 2" in said["fewer"]
    assert "1 of 2 runs are the same bit for bit, the others within 0.1 nats" in said["elsewhere"]
    assert f"{run}its final loss is " in said["far"] and " here" in said["far"]
    assert "and its losses there give" in said["word"]
    assert f"{run}its losses are no numbers" in said["words"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it is no file that the page Assignments gives: Invalid JSON"),
        ("[]", "it is no file that the page Assignments gives: Input should be an object"),
        ('{"normviz": 1}', "normviz: Input should be a valid string"),
        (None, "the file can't be read: No such file"),
        ({"assignment": "nonsense"}, "unknown assignment 'nonsense'"),
        ({"assignment": "skip_path"}, "has no runs to train again"),
        ({"engine": 999}, "its runs are of version 999 of the engine and this is"),
    ],
)
def test_what_is_no_file_gets_one_sentence(
    text: str | dict[str, Any] | None, says: str, written: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    if isinstance(text, dict):
        text = json.dumps(json.loads(written) | text)
    if text is not None:
        path.write_text(text)
    result = normviz("homework", str(path))
    assert result.exit_code == 2 and says in result.stderr
    assert len(result.stderr.splitlines()) == 1 and not result.stdout
