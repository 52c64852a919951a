"""The README is true: its commands are what CI runs, its tables and its tree are what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from normviz.catalog import INITS, NORMS, SCHEMES, TASKS
from normviz.catalog.registry import Registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"```bash\n(.*?)\n```", README, re.DOTALL)


def test_ci_runs_the_test_command() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    _, tests, *_ = COMMANDS
    for command in tests.split(" && "):
        assert command in ci


def test_both_commands_install_the_pinned_set_first() -> None:
    assert all("pip install -r requirements.txt" in command for command in COMMANDS[:2])
    assert "torch==2.13.0" in (ROOT / "requirements.txt").read_text()


@pytest.mark.parametrize("registry", [SCHEMES, NORMS, INITS, TASKS], ids=lambda r: r.kind)
def test_every_choice_is_named(registry: Registry) -> None:
    assert [record.key for record in registry if f"`{record.key}`" not in README] == []


def test_the_tree_names_what_there_is() -> None:
    tree = README.split("normviz/\n")[1].split("```")[0]
    inside = [w for line in tree.splitlines() if line.startswith("  ") for w in line[2:16].split()]
    for name in inside:
        assert (ROOT / "normviz" / name).exists(), name
    for name in re.findall(r"^(\w+)/", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_the_picture_is_there() -> None:
    for name in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / name).stat().st_size > 10_000


def test_the_terminal_examples_parse() -> None:
    from normviz.cli.run import read_config

    for line in COMMANDS[2].splitlines():
        words = re.sub(r"\s+#.*", "", line).split()
        if words[:2] == ["normviz", "run"]:
            named = [w.strip("'") for w in words[2:] if not w.startswith("-") and "." not in w]
            read_config([w for w in named if not re.fullmatch(r"[\d,]+", w)])


def test_ranges_hold_the_pinned_set() -> None:
    """requirements.txt satisfies pyproject's ranges: pip would install nothing more."""
    check = [sys.executable, "-m", "pip", "check"]
    assert subprocess.run(check, capture_output=True, text=True).returncode == 0
