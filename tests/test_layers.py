"""The shape of the code: imports go one way, files stay small, linters and types are content."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path for folder in ("normviz", "app", "tests") for path in (ROOT / folder).rglob("*.py")
)
TORCH_FREE = [
    "normviz", "normviz.runs.store", "normviz.charts", "normviz.execution.client", "normviz.links",
    "normviz.duel.presets", "normviz.runs.verdict", "normviz.runs.shipped", "normviz.runs.frames",
    "normviz.cli",
    "normviz.export", "normviz.result", "normviz.maps", "normviz.maps.drive", "normviz.by_hand",
    "normviz.execution",
    "normviz.norm_cost.client", "normviz.norm_cost.stored_results", "normviz.norm_cost.findings",
    "normviz.claims", "normviz.claims.drive", "normviz.health", "normviz.presence",
    "normviz.runs", "normviz.runs.archive", "normviz.own_model.client", "normviz.own_model.census",
]  # fmt: skip

INSIDE = {
    "normviz/bench/speed.py": "the tests' packages, where they are installed",
    "normviz/maps/cell.py": "PyTorch, for the process that trains",
    "normviz/execution/worker.py": "PyTorch, for the process that trains",
    "normviz/norm_cost/lab.py": "PyTorch, once the machine is had",
    "normviz/own_model/notebook.py": "IPython, which only a notebook has",
    "normviz/own_model/watch.py": "IPython and rich, for who shows the run there",
    "normviz/result.py": "pandas, PyArrow and Altair, for who takes a file away",
    "normviz/export/vega.py": "vl-convert, for the process that draws a picture",
    "normviz/player/bundle.py": "vl-convert, for who makes the player's script anew",
    "normviz/native/library.py": "NumPy, to ask for the CPU's instructions",
    "normviz/model/corpora.py": "0.7 MB of text, for who trains on it",
    "normviz/maps/ray.py": "Ray is an extra",
    "normviz/own_model/library.py": "transformers is an extra",
    "normviz/own_model/source.py": "transformers is an extra",
    "normviz/own_model/task.py": "PyTorch, for the process that inspects; Windows has no limits",
    "normviz/runs/store/machine_lock.py": "fcntl is not there on Windows",
    "app/start.py": "Ctrl-C while they load is no error",
}
"""Files that import inside functions, and why; commands import what they run when they run."""


def python(*words: str, seconds: float = 120, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, cwd=cwd, check=False
    )


@cache
def imported(path: Path) -> frozenset[str]:
    """First names of all modules a file imports, however it spells it."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return frozenset(found)


def users(module: str) -> set[str]:
    """Folders (or, at the top of the package, files) that import a module, tests left out."""
    return {
        "/".join(path.relative_to(ROOT).parts[:2])
        for path in SOURCES
        if "tests" not in path.relative_to(ROOT).parts and module in imported(path)
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The source as the wheel has it: the pages are the folder `normviz/app`."""
    for source, target in (("normviz", "normviz"), ("app", "normviz/app")):
        shutil.copytree(
            ROOT / source, tmp_path / target, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def linted(tree: Path) -> subprocess.CompletedProcess[str]:
    """What import-linter finds in a tree."""
    code = (
        "import sys; from importlinter.cli import lint_imports as lint; sys.exit(lint(sys.argv[1]))"
    )
    return python("-c", code, str(ROOT / "pyproject.toml"), cwd=tree)


def test_imports_go_one_way(tree: Path) -> None:
    done = linted(tree)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("normviz/stray.py", ""),
        ("normviz/app/stray.py", ""),
        ("normviz/app/views/stray/__init__.py", ""),
        ("normviz/app/views/maps/stray.py", "from ..duel import page"),
        ("normviz/app/widgets/stray.py", "from ..views.duel import page"),
        ("normviz/catalog/stray.py", "from .. import config"),
    ],
)
def test_a_module_without_a_layer_and_an_import_against_them_are_found(
    tree: Path, file: str, text: str
) -> None:
    (tree / file).parent.mkdir(exist_ok=True)
    (tree / file).write_text(text)
    done = linted(tree)
    assert done.returncode == 1 and "stray" in done.stdout


def test_imports_inside_functions_have_a_reason() -> None:
    """None of them is there because two modules need each other."""
    inside = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        if "tests" not in path.relative_to(ROOT).parts
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {path for path in inside if not path.startswith("normviz/cli/")} <= set(INSIDE)


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


@pytest.mark.slow
def test_streamlit_stays_in_the_page_and_altair_in_the_charts() -> None:
    assert {user.split("/")[0] for user in users("streamlit")} <= {"app"}
    assert users("altair") <= {"normviz/charts"}


def test_ray_is_asked_for_in_one_place() -> None:
    """It is an extra: whoever has not installed it must notice nothing until then."""
    assert users("ray") == {"normviz/maps"}


def test_torch_stays_where_numbers_are_made() -> None:
    assert users("torch") <= {
        "normviz/model", "normviz/probes", "normviz/training", "normviz/labs", "normviz/bench",
        "normviz/execution", "normviz/cli", "normviz/norm_cost", "normviz/own_model",
    }  # fmt: skip


def test_the_page_holds_no_sql() -> None:
    assert users("sqlite3") <= {"normviz/runs"}


@pytest.mark.parametrize("words", [("check",), ("format", "--check")], ids=" ".join)
def test_ruff_is_content(words: tuple[str, ...]) -> None:
    done = python("-m", "ruff", *words, "--no-cache", "--output-format", "concise", ".")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.slow
def test_types_are_right() -> None:
    done = python("-m", "pyright", "--pythonpath", sys.executable, seconds=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
