"""The terminal's list of stored runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_kit import normviz
from shelf_kit import SMALL, kept

from normviz.home import VARIABLE
from normviz.runs.store import Store


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return Store(tmp_path)


def test_runs_are_listed_newest_first(here: Store) -> None:
    assert normviz("runs").stdout == f"0 of 0 runs in {here.folder}\n"
    for scheme in ("pre", "post", "peri"):
        kept(here, SMALL.replace(scheme=scheme))
    lines = normviz("runs", "--limit", "2").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["id", "3", "2", "2"]
    assert "Peri-LN" in lines[1] and "learned" in lines[1] and "1.50" in lines[1]
    assert lines[-1] == f"2 of 3 runs in {here.folder}"
    assert "Post-LN" in normviz("runs", "post-ln", "depth", "3").stdout
    assert normviz("runs", "xyz").exit_code == 2


def test_a_run_is_deleted(here: Store) -> None:
    run, still = kept(here), kept(here, status="running")
    assert normviz("runs", "--delete", str(run)).stdout == f"deleted run {run}\n"
    for bad in (run, still):
        result = normviz("runs", "--delete", str(bad))
        assert result.exit_code == 2 and result.stderr.startswith("normviz: ")
