"""A parsed modelling file of the library: its classes, functions and configuration defaults."""

from __future__ import annotations

import ast
from contextlib import suppress
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Program:
    """The code of one model."""

    def __init__(self, modeling: Path) -> None:
        self.path = modeling
        self.text = modeling.read_text(encoding="utf-8")
        tree = ast.parse(self.text)
        self.classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def method(self, kind: str, name: str) -> Function | None:
        """A method of a class of the file, or of the first base in the file that has it."""
        node = self.classes.get(kind)
        if node is None:
            return None
        for each in node.body:
            if isinstance(each, Function) and each.name == name:
                return each
        for base in node.bases:
            if isinstance(base, ast.Name) and (found := self.method(base.id, name)):
                return found
        return None

    def bases(self, kind: str) -> set[str]:
        """Names of all bases, as far as they are in the file."""
        node, found = self.classes.get(kind), set()
        for base in node.bases if node else ():
            name = ast.unparse(base)
            found |= {name, *self.bases(name)}
        return found

    def code(self, kind: str) -> str:
        """Source of a class and, recursively, of the classes that its __init__ names."""
        node = self.classes[kind]
        inner = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self.classes]
        texts = [ast.unparse(self.classes[name]) for name in {kind, *inner}]
        return "\n".join(texts)

    @cached_property
    def configs(self) -> dict[str, dict[str, object]]:
        """Defaults of the configuration classes in the model's folder, by class name."""
        name = self.path.name.replace("modeling_", "configuration_", 1)
        path = self.path.with_name(name)
        if not path.is_file():
            return {}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found: dict[str, dict[str, object]] = {}
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                inherited: dict[str, object] = {}
                for base in node.bases:
                    inherited |= found.get(ast.unparse(base), {})
                found[node.name] = inherited | _defaults(node)
        return found

    def config_for(self, kind: str) -> dict[str, object]:
        """Defaults of the configuration that a class of the file is constructed with."""
        method = self.method(kind, "__init__")
        for argument in method.args.args if method else ():
            if argument.annotation is not None:
                name = ast.unparse(argument.annotation).strip("'\"")
                if name in self.configs:
                    return self.configs[name]
        text = {k: v for k, v in self.configs.items() if "Vision" not in k and "Audio" not in k}
        return max(text.values(), key=len, default={})


def _defaults(node: ast.ClassDef) -> dict[str, object]:
    """Class attributes with a literal value, or defaults of __init__."""
    found: dict[str, object] = {}
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value:
            _put(found, each.target.id, each.value)
        elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            _put(found, each.targets[0].id, each.value)
        elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
            arguments = each.args.args[len(each.args.args) - len(each.args.defaults) :]
            for argument, value in zip(arguments, each.args.defaults, strict=True):
                _put(found, argument.arg, value)
    for new, old in (found.get("attribute_map") or {}).items():  # pyright: ignore
        if old in found:
            found[new] = found[old]
    return found


def _put(found: dict[str, object], name: str, value: ast.expr) -> None:
    with suppress(ValueError):  # a computed value is unknown
        found[name] = ast.literal_eval(value)
