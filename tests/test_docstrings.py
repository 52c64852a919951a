"""Every public function, class and method of the package and of the app has a docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Documentable = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


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


def undocumented(sources: dict[str, str]) -> list[str]:
    """What lacks a docstring in these files, by path: "path: Class.method"."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
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
    paths = [path for name in ("normviz", "app") for path in (ROOT / name).rglob("*.py")]
    assert len(paths) > 100
    assert undocumented({str(p.relative_to(ROOT)): p.read_text("utf-8") for p in paths}) == []
