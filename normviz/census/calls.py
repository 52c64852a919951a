"""Calls on symbols: modules, functions of the file, and functions of PyTorch."""

from __future__ import annotations

import ast
import re
from typing import Any

from .evaluate import Evaluate
from .program import Function, Program
from .symbols import (
    Made,
    Many,
    Module,
    Norm,
    Outside,
    Sum,
    Tensor,
    Unknown,
    Viewed,
    bare,
    same,
    tensors,
)

DEPTH = 12
"""Nesting depth up to which calls are followed."""
SHAPES = {
    "flatten", "permute", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze", "view",
    "view_as",
}  # fmt: skip
KEPT = {
    "clamp", "clamp_", "clone", "contiguous", "cpu", "detach", "dropout", "float", "half", "to",
    "type", "type_as", "alpha_dropout",
}  # fmt: skip
"""Functions and methods that count as keeping a tensor's values."""
PARTS = {"chunk", "split", "unbind", "tensor_split"}
PASSED = ("dropout", "droppath", "identity", "stochasticdepth", "drop_path")
"""Modules that count as the identity."""


WIRE = re.compile(r"HyperConnection|Residual(?!.*(Attention|Block|Layer))|Laurel|AltUp")
"""Modules that replace the residual addition."""


class ReturnSignal(Exception):
    """A function returned a value."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class Stopped(Exception):
    """The code raised an error or can't be followed further."""


class Calls(Evaluate):
    """Evaluates the calls of a program."""

    def __init__(self, program: Program, turned: str) -> None:
        super().__init__(program, turned)
        self.depth = 0

    def statements(self, body: Any, env: dict[str, object]) -> None:
        raise NotImplementedError

    def norm_kind(self, kind: str, arguments: dict[str, str]) -> str | None:
        """Key of the norm that a class is, or None."""
        raise NotImplementedError

    def _call(self, node: ast.Call, env: dict[str, object]) -> object:
        arguments = [self.value(each, env) for each in node.args]
        named = {k.arg: self.value(k.value, env) for k in node.keywords if k.arg}
        name = ast.unparse(node.func)
        last = name.rsplit(".", 1)[-1]
        if name == "hasattr" and _has(*arguments):
            return True
        if isinstance(node.func, ast.Attribute):
            found = self.method_call(node.func, arguments, named, env)
            if found is not None:
                return found
        elif isinstance(it := self.value(node.func, env), Module | Outside):
            return self.through(it, arguments, named)
        if last == "apply_chunking_to_forward" and isinstance(node.args[0], ast.Attribute):
            return self.method_call(node.args[0], arguments[3:], {}, env)
        if last in self.program.functions and not name.startswith("self."):
            return self.function(self.program.functions[last], arguments, named)
        if last in self.program.classes and not name.startswith("self."):
            return self.made(last, "", arguments, named)
        if last in ("ModuleList", "Sequential"):
            return arguments[0] if arguments and isinstance(arguments[0], list) else arguments
        if last[:1].isupper() or "CLASSES" in name:
            return self.outside(node, name, env)
        return self.computed(last, arguments, named, name)

    def computed(
        self, last: str, arguments: list[object], named: dict[str, object], name: str
    ) -> object:
        """The result of a function of PyTorch, or of one that is not followed."""
        found = tensors([*arguments, *named.values()])
        if not found:
            return Unknown(name)
        if last in KEPT:
            return found[0]
        if last in PARTS:
            return Many(Viewed(found[0]))
        if last in SHAPES:
            return Viewed(found[0])
        if last in ("rms_norm", "layer_norm"):
            kind = self.norm_kind(last, {}) or last
            return Norm(f"{name}({id(found[0])})", kind, found[0])
        if last == "add" and len(found) == 2:
            return Sum(*found)
        return Made(found)

    def method_call(
        self,
        func: ast.Attribute,
        arguments: list[object],
        named: dict[str, object],
        env: dict[str, object],
    ) -> object:
        """A call of an attribute: a module, a method of the file, or a tensor's method; else None."""
        it = self.value(func.value, env)
        if isinstance(it, Module):
            inner = it.attributes.get(func.attr)
            if isinstance(inner, Module | Outside):
                return self.through(inner, arguments, named)
            if method := self.program.method(it.kind, func.attr):
                return self.function(method, [it, *arguments], named)
            found = tensors([*arguments, *named.values()])
            return Made(found) if found else Unknown(func.attr)
        if isinstance(it, list) and func.attr in ("append", "extend", "insert"):
            it.append(arguments[-1] if arguments else None)
            return Unknown()
        if isinstance(it, Tensor):
            return self.computed(func.attr, [it, *arguments], named, func.attr)
        if isinstance(it, Many) and func.attr == "size":
            return Unknown()
        return None

    def through(
        self, module: Module | Outside, arguments: list[object], named: dict[str, object]
    ) -> object:
        """The output of a module."""
        found = tensors([*arguments, *named.values()])
        if not found:
            return Unknown(module.kind)
        if any(word in module.kind.lower() for word in PASSED):
            return found[0]
        if (kind := self.kind_of_norm(module)) is not None:
            return Norm(module.path, kind, found[0])
        if WIRE.search(module.kind):
            self.wires.append(module.kind)
        method = self.program.method(module.kind, "forward")
        if isinstance(module, Outside) or method is None:
            return Made(found)
        result = self.function(method, [module, *arguments], named)
        first = next(iter(tensors([result])), None)
        if first is None:
            return Made(found)
        if _adds_to(first, found):
            return result
        return [Made((first,)), *result[1:]] if isinstance(result, list) else Made((first,))

    def kind_of_norm(self, module: Module | Outside) -> str | None:
        """Key of the norm that a module is, or None."""
        arguments = module.arguments if isinstance(module, Outside) else {}
        if "norm" not in module.kind.lower():
            return None
        return self.norm_kind(module.kind, arguments)

    def made(
        self, kind: str, path: str, arguments: list[object], named: dict[str, object]
    ) -> object:
        """An instance of a class of the file."""
        if "norm" in kind.lower() and self.norm_kind(kind, {}) is not None:
            return Outside(kind, path)
        module = Module(kind, path)
        if method := self.program.method(kind, "__init__"):
            self.function(method, [module, *arguments], named)
        return module

    def outside(self, node: ast.Call, name: str, env: dict[str, object]) -> object:
        """An instance of a class from outside the file, or one that a table of this module lists."""
        if isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
            table = self.program.constants.get(node.func.value.id)
            if isinstance(table, ast.Dict) and table.values:
                kind = ast.unparse(table.values[0])
                if kind in self.program.classes:
                    arguments = [self.value(each, env) for each in node.args]
                    return self.made(kind, "", arguments, {})
        given = {k.arg or "": ast.unparse(k.value) for k in node.keywords}
        for keyword in node.keywords:
            value = self.value(keyword.value, env)
            if keyword.arg and isinstance(value, bool):
                given[keyword.arg] = repr(value)
        return Outside(name.rsplit(".", 1)[-1], "", given)

    def function(
        self, method: Function, arguments: list[object], named: dict[str, object]
    ) -> object:
        """Call a function of the file; if it can't be followed, a tensor made of the arguments."""
        if self.depth >= DEPTH:
            return self._given_up(arguments, named)
        self.depth += 1
        try:
            self.statements(method.body, _bound(method, arguments, named))
        except ReturnSignal as signal:
            return signal.value
        except Stopped:
            return self._given_up(arguments, named)
        finally:
            self.depth -= 1
        return None

    def _given_up(self, arguments: list[object], named: dict[str, object]) -> object:
        found = tensors([*arguments, *named.values()])
        return Made(found) if found else Unknown()


def _has(it: object, name: object) -> bool:
    """Whether a module's __init__ set this attribute; other attributes may come from a base class."""
    return isinstance(it, Module) and name in it.attributes


def _bound(
    method: Function, arguments: list[object], named: dict[str, object]
) -> dict[str, object]:
    """The arguments of a call by name, with defaults."""
    names = [a.arg for a in (*method.args.posonlyargs, *method.args.args)]
    env: dict[str, object] = {name: Unknown(name) for name in names}
    defaults = method.args.defaults
    for name, node in zip(names[len(names) - len(defaults) :], defaults, strict=True):
        env[name] = node.value if isinstance(node, ast.Constant) else Unknown(name)
    for argument, node in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True):
        env[argument.arg] = node.value if isinstance(node, ast.Constant) else Unknown(argument.arg)
    env |= dict(zip(names, arguments, strict=False))
    if method.args.vararg:
        env[method.args.vararg.arg] = arguments[len(names) :]
    return env | {k: v for k, v in named.items() if k in env}


def _adds_to(result: Tensor, given: tuple[Tensor, ...]) -> bool:
    """Whether a module's result is one of its arguments plus something, or a norm of that sum."""
    result = bare(result)
    if isinstance(result, Norm):
        result = bare(result.of)
    if isinstance(result, Sum):
        return any(same(side, g) for side in (result.first, result.second) for g in given) or any(
            _adds_to(side, given) for side in (result.first, result.second)
        )
    return False
