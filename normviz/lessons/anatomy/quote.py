"""Quotations of the package's own source, without importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class _Module:
    """A file: the source of its top-level names, what each of them uses, and where imported names come from:
    another file of the package, or the line that imports them."""

    source: dict[str, str]
    uses: dict[str, set[str]]
    inside: dict[str, str]
    outside: dict[str, str]


@dataclass
class Quotation:
    """Quotes names of the package with all that they use of it, each of them once.

    given    names that are not quoted, as whoever quotes has them
    imports  the lines that import what else the quotations use
    """

    given: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)

    def quote(self, file: str, *names: str) -> str:
        """Source of top-level functions, classes and constants of a file, after what they use. Raises
        ValueError for a name that the file does not have."""
        names_by_file: dict[str, set[str]] = {}
        for name in names:
            self._collect(file, name, names_by_file)
        parts = dict.fromkeys(
            text
            for file, wanted in names_by_file.items()
            for name, text in _module(file).source.items()
            if name in wanted
        )
        return _joined(list(parts))

    def _collect(self, file: str, name: str, names_by_file: dict[str, set[str]]) -> None:
        if name in self.given:
            return
        self.given.add(name)
        module = _module(file)
        if name not in module.source:
            raise ValueError(f"{file} has no {name}: it has {', '.join(module.source)}")
        for used in sorted(module.uses[name] - {name}):
            if used in module.source:
                self._collect(file, used, names_by_file)
            elif used in module.inside:
                self._collect(module.inside[used], used, names_by_file)
            elif used in module.outside:
                self.imports.add(module.outside[used])
        # After the files that it needs.
        names_by_file[file] = names_by_file.pop(file, set()) | {name}


def _joined(parts: list[str]) -> str:
    """Two blank lines around functions and classes, none between constants."""
    is_large = [part.startswith(("class ", "def ", "@")) for part in parts]
    return "".join(
        ("\n\n\n" if is_large[i] or is_large[i - 1] else "\n") * (i > 0) + part
        for i, part in enumerate(parts)
    )


@cache
def _module(file: str) -> _Module:
    text = (PACKAGE / file).read_text("utf-8")
    module, lines, names = _Module({}, {}, {}, {}), text.splitlines(), list[str]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _imported(file, node, module)
            continue
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        part = "\n".join(lines[first - 1 : node.end_lineno]).removesuffix("  # fmt: skip")
        if isinstance(node, ast.Expr):  # the docstring of the constants before it
            part = "\n".join([*(module.source[name] for name in names[:1]), part])
        else:
            names = list(_names(node))
            module.uses.update(dict.fromkeys(names, _used(node)))
        module.source.update(dict.fromkeys(names, part))
    return module


def _used(node: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _names(node: ast.stmt) -> Iterator[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))


def _imported(file: str, node: ast.Import | ast.ImportFrom, module: _Module) -> None:
    source = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        name, known = alias.asname or alias.name, f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = (PACKAGE / file).parents[node.level - 1].relative_to(PACKAGE)
            module.inside[name] = str(folder / f"{(node.module or '').replace('.', '/')}.py")
        else:
            module.outside[name] = f"{source}import {alias.name}{known}"
