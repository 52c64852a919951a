"""The terminal, called in this process."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from click import Command
from click.testing import CliRunner, Result
from typer.main import get_command

from normviz.cli import main

TINY = ("depth=2", "width=16", "heads=2", "seq_len=8", "batch=4", "steps=20")


@cache
def _command() -> Command:
    """Typer would build all of the commands anew for every call."""
    return get_command(main)


def normviz(*words: str) -> Result:
    return CliRunner().invoke(_command(), words)


def run_json(*words: str) -> dict[str, Any]:
    result = normviz("run", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout, parse_constant=pytest.fail)
