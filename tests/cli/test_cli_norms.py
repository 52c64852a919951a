"""`normviz bench norms`: its table says what was measured, and bad input is a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from cost_kit import made
from typer.testing import CliRunner

from normviz.cli import main
from normviz.execution import TaskError
from normviz.studies.norm_cost import findings, measure, stored_results
from normviz.studies.norm_cost.findings import CLAIMS
from normviz.studies.norm_cost.result import Round
from normviz.studies.norm_cost.variants import VARIANTS

run = CliRunner().invoke


def test_it_prints_all_and_writes_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measure, "measure", lambda *_: iter([Round(0, 8, 5.0), made()]))
    out = tmp_path / "x.json"
    done = run(main, ["bench", "norms", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert findings.verdict(made()) in done.output
    for words in (*(v.label for v in VARIANTS), *(c.source for c in CLAIMS)):
        assert words in done.output
    assert done.output.count("not distinguishable") >= 25
    assert stored_results.ADAPTER.validate_json(out.read_bytes()) == made()


BAD = [
    (["--width", "33"], "width is 33, allowed is a multiple of 32"),
    (["--device", "tpu"], "device is 'tpu', allowed are cpu and cuda"),
    (["--out", "x.csv"], "--out is 'x.csv', allowed is a name ending in .json"),
]


def test_bad_input_is_a_sentence() -> None:
    for words, sentence in BAD:
        done = run(main, ["bench", "norms", *words])
        assert done.exit_code == 2
        assert sentence in done.output


def test_a_busy_machine_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object):
        raise TaskError("a run has been training here")
        yield

    monkeypatch.setattr(measure, "measure", busy)
    done = run(main, ["bench", "norms"])
    assert (done.exit_code, "a run has been training here" in done.output) == (2, True)
