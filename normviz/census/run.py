"""Execute the code of a layer on symbols: statements, and which branch of a condition is taken.

The defaults of the configuration and of the arguments decide a condition. An unknown condition can be
`turned` (inverted). The result of code that can't be followed is `Made` of the tensors it takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress

from .calls import Calls, ReturnSignal, Stopped
from .evaluate import is_true
from .symbols import Config, Many, Module, Unknown


class Run(Calls):
    """One execution path through the code of a file."""

    def statements(self, body: Iterable[ast.stmt], env: dict[str, object]) -> None:
        """Execute statements, until one returns."""
        for statement in body:
            self.statement(statement, env)

    def statement(self, node: ast.stmt, env: dict[str, object]) -> None:
        """Execute one statement. Raises ReturnSignal or Stopped."""
        match node:
            case ast.Assign(targets=targets, value=value):
                result = self.value(value, env)
                for target in targets:
                    self.bind(target, result, env)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.value(value, env), env)
            case ast.AugAssign(target=target, op=op, value=value):
                self.bind(target, self.value(ast.BinOp(_load(target), op, value), env), env)
            case ast.Return(value=value):
                raise ReturnSignal(self.value(value, env) if value else None)
            case ast.Raise():
                raise Stopped
            case ast.If(test=test, body=body, orelse=orelse):
                # In a chain of cases of which none is known to hold, take the first.
                is_chain = len(orelse) == 1 and isinstance(orelse[0], ast.If)
                self.chained = is_chain or self.chained
                goes, self.chained = self.goes(test, env, self.chained), is_chain
                self.statements(body if goes else orelse, env)
                self.chained = False
            case ast.With(body=body) | ast.Try(body=body):
                self.statements(body, env)
            case ast.For():
                self.loop(node, env)
            case ast.Expr(value=value):
                self.value(value, env)

    def goes(self, test: ast.expr, env: dict[str, object], unknown: bool = False) -> bool:
        """Whether a condition holds; `unknown` if that can't be decided."""
        text = ast.unparse(test)
        found = self.value(test, env)
        known = not isinstance(found, Unknown)
        if not known and text not in self.unknown:
            self.unknown.append(text)
        way = is_true(found) if known else unknown or self.is_switched_on(test, env)
        return not way if text == self.turned else way

    def is_switched_on(self, test: ast.expr, env: dict[str, object]) -> bool:
        """Whether an undecided condition has a part that is true: a switch of the configuration, as in
        `config.use_qk_norm and self.use_rope`, where the other part differs between layers."""
        return (
            isinstance(test, ast.BoolOp)
            and isinstance(test.op, ast.And)
            and any(self.value(part, env) is True for part in test.values)
        )

    def loop(self, node: ast.For, env: dict[str, object]) -> None:
        """Execute a loop over a list; one pass if its length is unknown."""
        items = self.value(node.iter, env)
        for item in items if isinstance(items, list | tuple) else [Unknown(ast.unparse(node.iter))]:
            self.bind(node.target, item, env)
            self.statements(node.body, env)

    def bind(self, target: ast.expr, value: object, env: dict[str, object]) -> None:
        """Assign a value to a target."""
        match target:
            case ast.Name(id=name):
                env[name] = value
            case ast.Attribute(value=owner, attr=name):
                it = self.value(owner, env)
                if isinstance(it, Config):
                    it.defaults[name] = value
                elif isinstance(it, Module):
                    self.name_module(value, f"{it.path}.{name}")
                    it.attributes[name] = value
                elif hasattr(it, "arguments"):
                    it.arguments[name] = repr(value)  # pyright: ignore (norm.bias = None)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self.bind_parts(parts, value, env)
            case ast.Starred(value=inner):
                self.bind(inner, value, env)

    def bind_parts(self, parts: list[ast.expr], value: object, env: dict[str, object]) -> None:
        """Assign a value to a tuple of targets."""
        if isinstance(value, Many):
            values: list[object] = [value.each] * len(parts)
        elif isinstance(value, list | tuple) and len(value) == len(parts):
            values = list(value)
        else:  # a module that returns a tuple puts its tensor first and its weights second
            values = [value, *[Unknown(ast.unparse(p)) for p in parts[1:]]]
        for part, each in zip(parts, values, strict=True):
            self.bind(part, each, env)

    def name_module(self, value: object, path: str) -> None:
        """Name a module after the attribute that it is first assigned to."""
        if hasattr(value, "path") and not value.path:  # pyright: ignore
            value.path = path  # pyright: ignore
            for name, inner in getattr(value, "attributes", {}).items():
                self.rename(inner, f"{path}.{name}")

    def rename(self, value: object, path: str) -> None:
        """Set the path of a module and of the modules inside it."""
        with suppress(AttributeError):
            if value.path != path:  # pyright: ignore
                value.path = path  # pyright: ignore
                for name, inner in getattr(value, "attributes", {}).items():
                    self.rename(inner, f"{path}.{name}")


def _load(target: ast.expr) -> ast.expr:
    """An assignment target as an expression."""
    return ast.parse(ast.unparse(target), mode="eval").body
