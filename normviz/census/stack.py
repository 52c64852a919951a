"""From a model's class to its stack of layers: the repeated class, and what follows the stack."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .calls import ReturnSignal, Stopped
from .norms import norm_kind
from .program import Program
from .run import Run
from .symbols import Config, Module, Outside, Stream, Tensor, Unknown


class Follow(Run):
    """A run that recognises norms."""

    def norm_kind(self, kind: str, arguments: dict[str, str]) -> str | None:
        return norm_kind(self.program, kind, arguments)


@dataclass(frozen=True)
class Stack:
    """Class of the layer, class that holds the stack, and the path to it from the model."""

    layer: str
    holder: str
    way: tuple[str, ...]


def stacks(program: Program, kind: str) -> list[Stack]:
    """Stacks below a class, nearest first, without vision and audio towers."""
    found: list[Stack] = []
    seen: set[str] = {kind}
    todo: list[tuple[str, tuple[str, ...]]] = [(kind, (kind,))]
    while todo:
        name, way = todo.pop(0)
        layers = repeated(program, name)
        found += [Stack(layer, name, way) for layer in layers]
        for inner in constructed(program, name):
            if inner not in seen and not any(w in inner for w in ("Vision", "Audio", "Image")):
                seen.add(inner)
                if inner not in layers:
                    todo.append((inner, (*way, inner)))
    return found


def repeated(program: Program, kind: str) -> list[str]:
    """Classes of the file that a class repeats in a list and that look like a whole layer."""
    method, found = program.method(kind, "__init__"), []
    for node in ast.walk(method) if method else ():
        if isinstance(node, ast.ListComp | ast.For | ast.GeneratorExp):
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                    name = call.func.id
                    if name in program.classes and is_layer(program, name) and name not in found:
                        found.append(name)
    return found


def is_layer(program: Program, kind: str) -> bool:
    """Whether a class is a block of a stack, by its name: not an expert, a head or a norm."""
    ends = ("Layer", "Block", "DecoderLayer", "EncoderLayer")
    return kind.endswith(ends) and program.method(kind, "forward") is not None


def constructed(program: Program, kind: str) -> list[str]:
    """Classes of the file that a class's __init__ constructs."""
    method, found = program.method(kind, "__init__"), []
    for node in ast.walk(method) if method else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[0]
            if name in program.classes and name not in found:
                found.append(name)
    return found


@dataclass
class Followed:
    """A layer's result, its undecided conditions, and the modules that replace the residual
    addition."""

    result: Tensor
    unknown: tuple[str, ...]
    wires: tuple[str, ...]


def follow(
    program: Program,
    kind: str,
    turned: str = "",
    changes: dict[str, object] | None = None,
) -> Followed:
    """A layer's forward pass on symbols, with `changes` to the configuration's defaults and one
    undecided condition `turned` (inverted). Raises Stopped if it has no result."""
    run = Follow(program, turned)
    config = Config({**program.config_for(kind), **(changes or {})})
    module = run.made(kind, "layer", [config], {})
    method = program.method(kind, "forward")
    if not isinstance(module, Module) or method is None:
        raise Stopped
    first = [a.arg for a in method.args.args][1:2]
    stream = Stream()
    env = run.function(method, [module, stream], {}) if first else None
    result = env[0] if isinstance(env, list) and env else env
    if not isinstance(result, Tensor):
        raise Stopped
    return Followed(result, tuple(run.unknown), tuple(run.wires))


def final_norm(
    program: Program, stack: Stack, changes: dict[str, object] | None = None
) -> str | None:
    """yes or no: whether a norm follows the loop over the layers, in the class with the loop or in
    the class that holds it; None if neither has such a loop."""
    for place, kind in enumerate(reversed(stack.way[-2:])):
        method = program.method(kind, "forward")
        if method is None:
            continue
        modules = _attributes(program, kind, changes)
        calls = _after_loop(method) if place == 0 else _after_call(method, stack, program, kind)
        if calls is None:
            return None
        if any(
            isinstance(modules.get(c), Outside) and _is_norm(program, modules[c]) for c in calls
        ):
            return "yes"
    return "no"


def _is_norm(program: Program, it: object) -> bool:
    assert isinstance(it, Outside)
    return "norm" in it.kind.lower() and norm_kind(program, it.kind, it.arguments) is not None


def _attributes(
    program: Program, kind: str, changes: dict[str, object] | None = None
) -> dict[str, object]:
    run, config = Follow(program, ""), Config({**program.config_for(kind), **(changes or {})})
    try:
        module = run.made(kind, "model", [config], {})
    except (ReturnSignal, Stopped, RecursionError):
        return {}
    return module.attributes if isinstance(module, Module) else {}


def _after_loop(method: ast.AST) -> list[str] | None:
    """Attributes of self that are called after the last loop of a method."""
    loops = [n for n in ast.walk(method) if isinstance(n, ast.For)]
    if not loops:
        return None
    end = max(loop.end_lineno or 0 for loop in loops)
    return [name for line, name in _calls(method) if line > end]


def _after_call(method: ast.AST, stack: Stack, program: Program, kind: str) -> list[str] | None:
    """Attributes of self that are called after the stack."""
    holders = {
        name
        for name, value in _attributes(program, kind).items()
        if isinstance(value, Module) and value.kind == stack.holder
    }
    lines = [line for line, name in _calls(method) if name in holders]
    if not lines:
        return []
    return [name for line, name in _calls(method) if line > min(lines)]


def _calls(method: ast.AST) -> list[tuple[int, str]]:
    return [
        (n.lineno, n.func.attr)
        for n in ast.walk(method)
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and isinstance(n.func.value, ast.Name)
        and n.func.value.id == "self"
    ]


__all__ = ["Followed", "Stack", "Unknown", "final_norm", "follow", "stacks"]
