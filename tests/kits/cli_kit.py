"""The terminal, called in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from normviz.cli import main

TINY = ("depth=2", "width=16", "heads=2", "seq_len=8", "batch=4", "steps=20")


def normviz(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def run_json(*words: str) -> dict[str, Any]:
    result = normviz("run", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout, parse_constant=pytest.fail)
