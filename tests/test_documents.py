"""The tables of the documents are those that the command makes, of what the repository holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from normviz.home import shipped
from normviz.lessons.presets import PRESETS
from normviz.runs.archive import load

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_tables_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.documents", "--check"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_results_are_of_the_presets_and_their_first_seeds_are_the_runs_that_ship() -> None:
    ship = {
        it.config.key: it
        for path in (shipped("assets") / "runs").glob("*.npz")
        for it in load(path)
    }
    for row in json.loads((ROOT / "tests" / "bench" / "results.json").read_text()):
        config = PRESETS[row["preset"]].lanes()[row["lane"]]
        assert row["key"] == config.key
        assert len(row["losses"]) == 8
        if it := ship.get(config.key):
            first = None if it.first_bad else pytest.approx(it.final, abs=2e-3)
            assert row["losses"][0] == first, row
