"""Expressions on symbols; `calls` evaluates calls."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from .program import Program
from .symbols import (  # fmt: skip
    Config,
    Made,
    Many,
    Module,
    Outside,
    Scaled,
    Sum,
    Tensor,
    Unknown,
    Viewed,
    tensors,
)

COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def is_true(value: object) -> bool:
    """Whether `if value` takes its branch, for values that are not symbols."""
    return True if isinstance(value, Tensor | Module | Outside | Many) else bool(value)


class Evaluate:
    """Evaluates the expressions of a program."""

    def __init__(self, program: Program, turned: str) -> None:
        self.program, self.turned = program, turned
        self.unknown: list[str] = []
        self.wires: list[str] = []
        self.chained = False

    def goes(self, test: ast.expr, env: dict[str, object], unknown: bool = False) -> bool:
        """Whether a condition holds; `unknown` if that can't be decided."""
        raise NotImplementedError

    def value(self, node: ast.expr, env: dict[str, object]) -> object:
        """The value of an expression; Unknown if it can't be followed."""
        name = f"_{type(node).__name__.lower()}"
        found = getattr(self, name, None)
        return found(node, env) if found else Unknown(ast.unparse(node))

    def _constant(self, node: ast.Constant, env: dict[str, object]) -> object:
        del env
        return node.value

    def _name(self, node: ast.Name, env: dict[str, object]) -> object:
        return env.get(node.id, Unknown(node.id))

    def _tuple(self, node: ast.Tuple | ast.List, env: dict[str, object]) -> object:
        return [self.value(each, env) for each in node.elts]

    _list = _tuple

    def _starred(self, node: ast.Starred, env: dict[str, object]) -> object:
        return self.value(node.value, env)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp, env: dict[str, object]) -> object:
        inner = dict(env)
        for name in ast.walk(node.generators[0].target):
            if isinstance(name, ast.Name):
                inner[name.id] = Unknown(name.id)
        return [self.value(node.elt, inner)]

    _generatorexp = _listcomp

    def _ifexp(self, node: ast.IfExp, env: dict[str, object]) -> object:
        return self.value(node.body if self.goes(node.test, env) else node.orelse, env)

    def _unaryop(self, node: ast.UnaryOp, env: dict[str, object]) -> object:
        value = self.value(node.operand, env)
        if isinstance(value, Unknown | Tensor):
            return Unknown() if isinstance(value, Unknown) else Made((value,))
        if isinstance(node.op, ast.Not):
            return not is_true(value)
        return -value if isinstance(value, int | float) else Unknown()

    def _boolop(self, node: ast.BoolOp, env: dict[str, object]) -> object:
        ends = isinstance(node.op, ast.Or)
        values = [self.value(each, env) for each in node.values]
        if any(not isinstance(v, Unknown) and is_true(v) == ends for v in values):
            return ends
        return Unknown() if any(isinstance(v, Unknown) for v in values) else values[-1]

    def _compare(self, node: ast.Compare, env: dict[str, object]) -> object:
        left, right = self.value(node.left, env), self.value(node.comparators[0], env)
        match node.ops[0]:
            case ast.Is() | ast.IsNot() if right is None and not isinstance(left, Unknown):
                return (left is None) == isinstance(node.ops[0], ast.Is)
        compare = COMPARISONS.get(type(node.ops[0]))
        if compare is None or len(node.ops) > 1 or not all(_is_plain(v) for v in (left, right)):
            return Unknown()
        try:
            return compare(left, right)
        except TypeError:
            return Unknown()

    def _binop(self, node: ast.BinOp, env: dict[str, object]) -> object:
        left, right = self.value(node.left, env), self.value(node.right, env)
        both = tensors([left, right])
        if not both:
            if isinstance(left, list) and isinstance(right, list) and isinstance(node.op, ast.Add):
                return left + right
            return Unknown(ast.unparse(node))
        if isinstance(left, list) or isinstance(right, list):
            left, right = (v if isinstance(v, list) else [v] for v in (left, right))
            return left + right
        if isinstance(node.op, ast.Add) and len(both) == 2:
            return Sum(*both)
        if isinstance(node.op, ast.Mult | ast.Div) and len(both) == 1:
            other = node.right if isinstance(left, Tensor) else node.left
            return Scaled(both[0], ast.unparse(other))
        return Made(both)

    def _attribute(self, node: ast.Attribute, env: dict[str, object]) -> object:
        it = self.value(node.value, env)
        if isinstance(it, Config):
            return it.defaults.get(node.attr, Unknown(f"config.{node.attr}"))
        if isinstance(it, Module):
            return it.attributes.get(node.attr, Unknown(f"self.{node.attr}"))
        return Unknown(ast.unparse(node))

    def _subscript(self, node: ast.Subscript, env: dict[str, object]) -> object:
        it, index = self.value(node.value, env), self.value(node.slice, env)
        if isinstance(it, list):
            if isinstance(index, int) and -len(it) <= index < len(it):
                return it[index]
            return it if isinstance(node.slice, ast.Slice) else Unknown()
        if isinstance(it, Many):
            return it.each
        return Viewed(it) if isinstance(it, Tensor) else Unknown(ast.unparse(node))

    def _call(self, node: ast.Call, env: dict[str, object]) -> object:
        raise NotImplementedError


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
