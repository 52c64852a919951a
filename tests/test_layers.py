"""The shape of the code: imports go one way, files stay small, linters and types are content."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for folder in ("normviz", "app", "tests") for path in (ROOT / folder).rglob("*.py")
)
TORCH_FREE = [
    "normviz", "normviz.store", "normviz.charts", "normviz.runner.client", "normviz.links",
    "normviz.presets", "normviz.verdict", "normviz.shipped", "normviz.frames", "normviz.cli",
    "normviz.export", "normviz.result", "normviz.sweep", "normviz.sweep.drive", "normviz.by_hand",
    "normviz.norm_cost.client", "normviz.norm_cost.stored_results", "normviz.norm_cost.findings",
    "normviz.claims", "normviz.claims.drive", "normviz.health", "normviz.presence",
]  # fmt: skip


def python(*words: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False
    )


def imported(path: Path) -> Iterator[str]:
    """First names of all modules a file imports, however it spells it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def users(module: str) -> set[str]:
    """Folders (or, at the top of the package, files) that import a module, tests left out."""
    return {
        "/".join(path.relative_to(ROOT).parts[:2])
        for path in SOURCES
        if "tests" not in path.relative_to(ROOT).parts and module in set(imported(path))
    }


def test_imports_go_one_way() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = python("-c", code)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_the_page_never_loads_torch() -> None:
    """One process for all: it names the first import after which torch is there."""
    loads = f"""
import importlib, sys
for name in {TORCH_FREE}:
    importlib.import_module(name)
    assert "torch" not in sys.modules, name
"""
    done = python("-c", loads)
    assert done.returncode == 0, done.stderr[-500:]


def test_streamlit_stays_in_the_page_and_altair_in_the_charts() -> None:
    assert {user.split("/")[0] for user in users("streamlit")} <= {"app"}
    assert users("altair") <= {"normviz/charts"}


def test_ray_is_asked_for_in_one_place() -> None:
    """It is an extra: whoever has not installed it must notice nothing until then."""
    assert users("ray") == {"normviz/sweep"}


def test_torch_stays_where_numbers_are_made() -> None:
    assert users("torch") <= {
        "normviz/nn", "normviz/probes", "normviz/labs", "normviz/bench", "normviz/runner", "normviz/cli",
        "normviz/norm_cost",
        "normviz/data.py", "normviz/training.py", "normviz/divergence.py",
    }  # fmt: skip


def test_the_page_holds_no_sql() -> None:
    assert not [user for user in users("sqlite3") if not user.startswith("normviz/store")]


@pytest.mark.parametrize("words", [("check",), ("format", "--check")], ids=" ".join)
def test_ruff_is_content(words: tuple[str, ...]) -> None:
    done = python("-m", "ruff", *words, "--no-cache", "--output-format", "concise", ".")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.slow
def test_types_are_right() -> None:
    done = python("-m", "pyright", "--pythonpath", sys.executable, seconds=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
