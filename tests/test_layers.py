"""The shape of the code: imports go one way, linters and types are content, names are explained."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for folder in ("normviz", "app") for path in (ROOT / folder).rglob("*.py"))
TORCH_FREE = [
    "normviz", "normviz.runs.store", "normviz.charts", "normviz.execution.client", "normviz.links",
    "normviz.lessons.presets", "normviz.runs.verdict", "normviz.runs.shipped",
    "normviz.runs.frames", "normviz.cli", "normviz.export", "normviz.result",
    "normviz.studies.maps", "normviz.studies.maps.drive", "normviz.lessons.by_hand",
    "normviz.execution",
    "normviz.studies.norm_cost.stored_results", "normviz.studies.norm_cost.findings",
    "normviz.studies.claims", "normviz.studies.claims.drive", "normviz.execution.health",
    "normviz.app.session.open_pages", "normviz.runs", "normviz.runs.archive",
    "normviz.own_model.client", "normviz.own_model.census",
]  # fmt: skip
LOADS = f"""
import importlib, sys
for name in {TORCH_FREE}:
    importlib.import_module(name)
    assert "torch" not in sys.modules, name
"""
INSIDE = {
    "normviz/cli/bench_speed.py": "the tests' packages, where they are installed",
    "normviz/execution/cell.py": "PyTorch, for the process that trains",
    "normviz/execution/worker.py": "PyTorch, for the process that trains",
    "normviz/own_model/notebook.py": "IPython, which only a notebook has",
    "normviz/own_model/watch.py": "IPython and rich, for who shows the run there",
    "normviz/result.py": "pandas, PyArrow and Altair, for who takes a file away",
    "normviz/export/vega.py": "vl-convert, for the process that draws a picture",
    "normviz/export/figure.py": "vl-convert, which only a figure as PDF needs",
    "normviz/player/bundle.py": "vl-convert, for who makes the player's script anew",
    "normviz/native/library.py": "NumPy, to ask for the CPU's instructions",
    "normviz/model/corpora.py": "0.7 MB of text, for who trains on it",
    "normviz/studies/maps/ray.py": "Ray is an extra",
    "normviz/own_model/source.py": "huggingface_hub comes with transformers, an extra",
    "normviz/own_model/task.py": "PyTorch, for the process that inspects; Windows has no limits",
    "normviz/runs/store/lock_file.py": "fcntl is not there on Windows",
    "app/start.py": "Ctrl-C while they load is no error",
}
"""Files that import inside functions, and why; commands import what they run when they run."""
USERS = {
    "streamlit": {"app"},
    "altair": {"normviz/charts", "normviz/studies/norm_cost"},
    "ray": {"normviz/studies/maps"},
    "torch": {
        "normviz/catalog/norms", "normviz/model", "normviz/training", "normviz/studies/labs",
        "normviz/studies/norm_cost", "normviz/execution", "normviz/cli", "normviz/own_model",
        "normviz/browser",
    },
    "sqlite3": {"normviz/runs"},
}  # fmt: skip
"""Folders that may import a package. Ray is an extra: whoever has not installed it must notice nothing."""


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Documentable = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def python(*words: str, cwd: Path = ROOT) -> None:
    """Must end without an error."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=1800, cwd=cwd, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> tuple[frozenset[str], bool]:
    """First names of all packages that a file imports, and whether a function imports."""
    names, inside = set[str](), False
    left: list[tuple[ast.stmt, bool]] = [(node, False) for node in parsed(path).body]
    for node, within in left:  # statements alone: no expression imports
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
        inside = inside or (within and isinstance(node, ast.Import | ast.ImportFrom))
        within = within or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += [(one, within) for one in getattr(node, field, ())]
    return frozenset(names), inside


@pytest.mark.slow
def test_imports_go_one_way(tmp_path: Path) -> None:
    """In the tree that the wheel has: the pages are the folder `normviz/app`."""
    for source, target in (("normviz", "normviz"), ("app", "normviz/app")):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / source, tmp_path / target, ignore=ignored)
    code = (
        "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1]))"
    )
    python("-c", code, str(ROOT / "pyproject.toml"), cwd=tmp_path)


@pytest.mark.slow
def test_packages_stay_where_they_are_used() -> None:
    for package, allowed in USERS.items():
        for path in SOURCES:
            if package in imports(path)[0]:
                place = path.relative_to(ROOT).as_posix()
                assert place.startswith(tuple(f"{it}/" for it in allowed)), (package, place)


@pytest.mark.slow
def test_imports_inside_functions_have_a_reason() -> None:
    """None of them is there because two modules need each other."""
    inside = {path.relative_to(ROOT).as_posix() for path in SOURCES if imports(path)[1]}
    assert {path for path in inside if not path.startswith("normviz/cli/")} <= set(INSIDE)


def public(body: list[ast.stmt]) -> Iterator[Documentable]:
    """The functions and classes of a body whose names have no leading underscore."""
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            yield node


def bases(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """The base classes, and theirs, that are in the packages; a base from elsewhere is not."""
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name) and base.id != node.name and base.id in classes:
            yield classes[base.id]
            yield from bases(classes[base.id], classes)


def is_exempt(name: str, node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether a method of a documented class is `forward`, or overrides a documented method."""
    if ast.get_docstring(node) is None:
        return False
    return name == "forward" or any(
        method.name == name and ast.get_docstring(method)
        for base in bases(node, classes)
        for method in public(base.body)
    )


def undocumented(trees: dict[str, ast.Module]) -> list[str]:
    """What lacks a docstring in these files, by path: "path: Class.method"."""
    classes = {
        node.name: node
        for tree in trees.values()
        for node in public(tree.body)
        if isinstance(node, ast.ClassDef)
    }
    lacking = []
    for path, tree in trees.items():
        for node in public(tree.body):
            if not ast.get_docstring(node):
                lacking.append(f"{path}: {node.name}")
            if isinstance(node, ast.ClassDef):
                lacking += [
                    f"{path}: {node.name}.{method.name}"
                    for method in public(node.body)
                    if not ast.get_docstring(method) and not is_exempt(method.name, node, classes)
                ]
    return lacking


@pytest.mark.slow
def test_every_public_name_has_a_docstring() -> None:
    """Every public function, class and method of the package and of the app."""
    assert len(SOURCES) > 100
    assert undocumented({str(path.relative_to(ROOT)): parsed(path) for path in SOURCES}) == []


@pytest.mark.slow
def test_what_the_page_imports_loads_no_torch() -> None:
    """It names the first import after which torch is there. `test_wheel` opens the page."""
    python("-c", LOADS)


@pytest.mark.slow
def test_ruff_is_content() -> None:
    for words in (("check", "--output-format", "concise"), ("format", "--check")):
        python("-m", "ruff", *words, "--no-cache", ".")


@pytest.mark.slow
def test_types_are_right() -> None:
    words = ("--output-format=min-text", "--python-interpreter-path", sys.executable)
    python("-m", "pyrefly", "check", *words)
