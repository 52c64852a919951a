"""Executes the code of a layer of `transformers` on symbols instead of tensors.

`Program` is a parsed modelling file. `Interpreter` follows a forward pass through it: statements here,
calls in `Calls`, expressions in `Evaluate`. The result shows which operations the residual stream passed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


class Tensor:
    """A symbol for a tensor."""


@dataclass(frozen=True)
class Stream(Tensor):
    """The input of a layer."""


@dataclass(frozen=True)
class Norm(Tensor):
    """The output of a norm; `name` is the path of the module, `kind` the key of the norm."""

    name: str
    kind: str
    of: Tensor


@dataclass(frozen=True)
class Made(Tensor):
    """Any other result of some tensors; `by` is the path of the module that made it, if one did."""

    of: tuple[Tensor, ...]
    by: str = ""


@dataclass(frozen=True)
class Sum(Tensor):
    """first + second."""

    first: Tensor
    second: Tensor


@dataclass(frozen=True)
class Scaled(Tensor):
    """A tensor times a number or a vector; `by` is its source code."""

    of: Tensor
    by: str
    number: bool = False


@dataclass(frozen=True)
class Viewed(Tensor):
    """The same values in another shape, such as heads."""

    of: Tensor


@dataclass(frozen=True)
class Unknown:
    """A value that is not a tensor and is not known.

    `guess` is for the kind of a layer: whether the condition holds in a layer with attention.
    """

    text: str = ""
    guess: bool | None = None


@dataclass(frozen=True)
class Class:
    """A class of the file, as a value."""

    name: str


@dataclass
class Config:
    """A model's configuration, with the defaults of its class."""

    defaults: dict[str, object]


@dataclass
class Module:
    """A module of the file, with the attributes that its __init__ sets."""

    kind: str
    path: str
    attributes: dict[str, object] = field(default_factory=dict)


@dataclass
class Outside:
    """A module of PyTorch or of the library's shared code: name, and arguments as source code."""

    kind: str
    path: str
    arguments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Many:
    """Several values that are each like this one, such as chunks of a tensor."""

    each: object


def bare(tensor: Tensor) -> Tensor:
    """The tensor without changes of shape around it."""
    while isinstance(tensor, Viewed):
        tensor = tensor.of
    return tensor


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two symbols are the same apart from shapes."""
    a, b = bare(a), bare(b)
    if a is b:
        return True
    if isinstance(a, Norm) and isinstance(b, Norm):
        return a.name == b.name and same(a.of, b.of)
    if isinstance(a, Sum) and isinstance(b, Sum):
        return same(a.first, b.first) and same(a.second, b.second)
    return isinstance(a, Stream) and isinstance(b, Stream)


def tensors(values: Any) -> tuple[Tensor, ...]:
    """All tensors among values, including those inside lists."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, Many):
            found += tensors([value.each])
        elif isinstance(value, list | tuple):
            found += tensors(value)
        elif isinstance(value, dict):
            found += tensors(value.values())
    return tuple(found)


# A parsed modelling file: its classes, functions and configuration defaults.

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Program:
    """The code of one model."""

    def __init__(self, modeling: Path) -> None:
        self.path = modeling
        self.text = modeling.read_text(encoding="utf-8")
        body = [*_beside(modeling, ast.parse(self.text).body)]
        self.classes = {n.name: n for n in body if isinstance(n, ast.ClassDef)}
        self.functions = {n.name: n for n in body if isinstance(n, ast.FunctionDef)}
        self.constants = {
            target.id: node.value
            for node in body
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


def _beside(modeling: Path, body: list[ast.stmt]) -> Iterable[ast.stmt]:
    """The statements of a file, those under its conditions too, after those of the files of its folder
    that it imports."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            path = modeling.with_name(f"{node.module}.py")
            if path.is_file() and not node.module.startswith("configuration"):
                yield from _beside(path, ast.parse(path.read_text(encoding="utf-8")).body)
    for node in body:
        if isinstance(node, ast.If):
            yield from _beside(modeling, [*node.body, *node.orelse])
        else:
            yield node


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


# Expressions; a subclass evaluates calls.

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

    def __init__(self, program: Program, turned: frozenset[str] = frozenset()) -> None:
        self.program, self.turned = program, turned
        self.unknown: list[str] = []
        self.kinds: list[str] = []
        self.wires: list[str] = []
        self.refused = False
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
        if node.id in env:
            return env[node.id]
        if node.id in self.program.classes:
            return Class(node.id)
        constant = self.program.constants.get(node.id)
        if isinstance(constant, ast.Dict):
            return self.value(constant, {})
        return Unknown(node.id)

    def _dict(self, node: ast.Dict, env: dict[str, object]) -> object:
        keys = [getattr(key, "value", None) for key in node.keys]
        return dict(zip(keys, (self.value(each, env) for each in node.values), strict=True))

    def _namedexpr(self, node: ast.NamedExpr, env: dict[str, object]) -> object:
        env[node.target.id] = self.value(node.value, env)
        return env[node.target.id]

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
        items = self.value(node.generators[0].iter, env)
        target = node.generators[0].target
        if isinstance(items, list) and isinstance(target, ast.Name):
            return [self.value(node.elt, {**inner, target.id: item}) for item in items]
        return [self.value(node.elt, inner)]

    _generatorexp = _listcomp

    def _ifexp(self, node: ast.IfExp, env: dict[str, object]) -> object:
        return self.value(node.body if self.goes(node.test, env) else node.orelse, env)

    def _unaryop(self, node: ast.UnaryOp, env: dict[str, object]) -> object:
        value = self.value(node.operand, env)
        if isinstance(value, Unknown):
            flips = isinstance(node.op, ast.Not) and value.guess is not None
            return Unknown(ast.unparse(node), not value.guess) if flips else Unknown()
        if isinstance(value, Tensor):
            return Made((value,))
        if isinstance(node.op, ast.Not):
            return not is_true(value)
        return -value if isinstance(value, int | float) else Unknown()

    def _boolop(self, node: ast.BoolOp, env: dict[str, object]) -> object:
        ends = isinstance(node.op, ast.Or)
        values = [self.value(each, env) for each in node.values]
        if any(not isinstance(v, Unknown) and is_true(v) == ends for v in values):
            return ends
        unknown = [v for v in values if isinstance(v, Unknown)]
        if any(v.guess is ends for v in unknown):
            return Unknown(ast.unparse(node), ends)
        return Unknown() if unknown else values[-1]

    def _compare(self, node: ast.Compare, env: dict[str, object]) -> object:
        left, right = self.value(node.left, env), self.value(node.comparators[0], env)
        match node.ops[0]:
            case ast.Is() | ast.IsNot() if right is None and not isinstance(left, Unknown):
                return (left is None) == isinstance(node.ops[0], ast.Is)
        names_kind = isinstance(left, Unknown) and KIND.search(left.text)
        if names_kind and (guess := _guess(node.ops[0], right)) is not None:
            return Unknown(ast.unparse(node), guess)
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
            other, factor = (node.right, right) if isinstance(left, Tensor) else (node.left, left)
            if "mask" in ast.unparse(other):
                return both[0]
            return Scaled(both[0], ast.unparse(other), _is_number(factor))
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
            if (
                isinstance(index, Unknown)
                and len(it) == 1
                and not isinstance(node.slice, ast.Slice)
            ):
                return it[0]
            return it if isinstance(node.slice, ast.Slice) else Unknown()
        if isinstance(it, Many):
            return it.each
        if isinstance(it, dict):
            return self.chosen(it, index, ast.unparse(node))
        return Viewed(it) if isinstance(it, Tensor) else Unknown(ast.unparse(node))

    def chosen(self, table: dict[object, object], key: object, text: str) -> object:
        """The value of a table; of classes of layers under an unknown key the one with attention."""
        if _is_plain(key):
            return table.get(key, Unknown(text))
        kinds = [value for value in table.values() if isinstance(value, Class)]
        if not kinds or len(kinds) < len(table):
            return Unknown(text)
        attention = [it for it in kinds if ATTENTION.search(it.name)]
        others = [it for it in kinds if it not in attention]
        if attention and others and text not in self.kinds:
            self.kinds.append(text)
        return ((others if text in self.turned else attention) or kinds)[0]

    def _call(self, node: ast.Call, env: dict[str, object]) -> object:
        raise NotImplementedError


KIND = re.compile(r"(layer|block|mixer|operator)s?_(block_)?types?|pattern")
"""In the code of an expression that names the kind of a layer."""
ATTENTION = re.compile(r"(?<!Linear)(?<!linear_)(Attention|attention)|Attn(?!Free)|^attn$")
OTHER = re.compile(r"linear_attention|lightning|mamba|ssm|conv|recurrent|rwkv|delta", re.IGNORECASE)


def _guess(op: ast.cmpop, kinds: object) -> bool | None:
    """Whether a layer with attention is (or is not) of one of these kinds; None where they do not say."""
    named = [it for it in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(it, str)]
    if not isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) or not named:
        return None
    if all(OTHER.search(it) for it in named):
        found = False
    elif any(it in ("attention", "full_attention", "attn", "self_attention") for it in named):
        found = True
    else:
        return None
    return found == isinstance(op, ast.Eq | ast.In)


def _is_number(value: object) -> bool:
    """Whether a factor is one number, not a vector."""
    if isinstance(value, Unknown):
        return value.text.startswith("math.")
    if isinstance(value, Outside) and value.kind in ("Parameter", "Buffer"):
        return ONE.match(value.arguments.get("0", "")) is not None
    return isinstance(value, int | float)


ONE = re.compile(
    r"torch\.(?:(?:ones|zeros|empty)\((?:1|\(1,\)|\(\)|\[1?\])|tensor\((?:-?[\d.]+|\[-?[\d.]+\])|"
    r"full\(\((?:1,)?\), -?[\d.]+)(?:\)|, [a-z])"
)
"""Makes a tensor of one number."""


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


# Calls: modules, functions of the file, and functions of PyTorch.

DEPTH = 12
"""Nesting depth up to which calls are followed."""
SHAPES = {
    "flatten", "permute", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze", "view",
}  # fmt: skip
SHAPED = {"expand_as", "view_as", "reshape_as"}
LIKE = SHAPED | {"type_as", "to", "masked_fill"}
"""Methods that keep the values of their tensor and read no other tensor's values."""
KEPT = {
    "clamp", "clamp_", "clone", "contiguous", "cpu", "detach", "dropout", "float", "half", "to",
    "type", "type_as", "alpha_dropout",
}  # fmt: skip
"""Functions and methods that count as keeping a tensor's values."""
PARTS = {"chunk", "split", "unbind", "tensor_split"}
BUILTINS = {"hasattr", "isinstance", "getattr", "enumerate", "zip"}
PASSED = re.compile(r"(dropout|droppath|identity|stochasticdepth|drop_path)([123]d)?$")
"""Modules that count as the identity, by the end of their name in lower case."""


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

    def __init__(self, program: Program, turned: frozenset[str] = frozenset()) -> None:
        super().__init__(program, turned)
        self.depth = 0

    def statements(self, body: Any, env: dict[str, object]) -> None:
        """Execute statements; `Interpreter` does it."""
        raise NotImplementedError

    def name_module(self, value: object, path: str) -> None:
        """Name a module after an attribute; `Interpreter` does it."""
        raise NotImplementedError

    def norm_kind(self, kind: str, arguments: dict[str, str]) -> str | None:
        """Key of the norm that a class is, or None."""
        raise NotImplementedError

    def _call(self, node: ast.Call, env: dict[str, object]) -> object:
        arguments = [self.value(each, env) for each in node.args]
        named = {k.arg: self.value(k.value, env) for k in node.keywords if k.arg}
        name = ast.unparse(node.func)
        last = name.rsplit(".", 1)[-1]
        if name in BUILTINS and (found := self.builtin(name, node, arguments, env)) is not None:
            return found
        if isinstance(node.func, ast.Attribute):
            found = self.method_call(node.func, arguments, named, env)
            if found is not None:
                return found
        elif isinstance(it := self.value(node.func, env), Module | Outside):
            return self.through(it, arguments, named)
        elif isinstance(it, Class):
            return self.made(it.name, "", arguments, named)
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

    def builtin(
        self, name: str, node: ast.Call, arguments: list[object], env: dict[str, object]
    ) -> object:
        """The result of one of Python's own functions; None where it can't be told."""
        match name, arguments:
            case "hasattr", [it, attribute]:
                return _has(it, attribute) or None
            case "isinstance", [it, _]:
                return _is_instance(it, ast.unparse(node.args[1]))
            case "getattr", [_, str(attribute), *_]:
                return self._attribute(ast.Attribute(node.args[0], attribute, ast.Load()), env)
            case "enumerate", [list(items), *_]:
                return [[Unknown("index"), each] for each in items]
            case "zip", [list(first), list(second)]:
                return [list(pair) for pair in zip(first, second, strict=False)]
        return None

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
        if func.attr in LIKE and not isinstance(it, Tensor):
            return it
        if isinstance(it, Module):
            inner = it.attributes.get(func.attr)
            if isinstance(inner, Module | Outside):
                return self.through(inner, arguments, named)
            if func.attr == "forward":
                return self.through(it, arguments, named)
            if method := self.program.method(it.kind, func.attr):
                return self.function(method, [it, *arguments], named)
            found = tensors([*arguments, *named.values()])
            return Made(found) if found else Unknown(func.attr)
        if isinstance(it, list) and func.attr in ("append", "extend", "insert"):
            it.append(arguments[-1] if arguments else None)
            self.name_entries(it, func.value, env)
            return Unknown()
        if isinstance(it, Tensor):
            return self.tensor_method(it, func.attr, arguments, named)
        if isinstance(it, Many) and func.attr == "size":
            return Unknown()
        return None

    def tensor_method(
        self, it: Tensor, name: str, arguments: list[object], named: dict[str, object]
    ) -> object:
        """The result of a tensor's method."""
        if name in LIKE:
            return Viewed(it) if name in SHAPED else it
        return self.computed(name, [it, *arguments], named, name)

    def name_entries(self, entries: list[object], node: ast.expr, env: dict[str, object]) -> None:
        """Name the modules of a list after the attribute that holds it."""
        if isinstance(node, ast.Attribute) and isinstance(
            owner := self.value(node.value, env), Module
        ):
            self.name_module(entries, f"{owner.path}.{node.attr}")

    def through(
        self, module: Module | Outside, arguments: list[object], named: dict[str, object]
    ) -> object:
        """The output of a module."""
        found = tensors([*arguments, *named.values()])
        if not found:
            return Unknown(module.kind)
        if PASSED.search(module.kind.lower()):
            return found[0]
        if (kind := self.kind_of_norm(module)) is not None:
            return Norm(module.path, kind, found[0])
        if WIRE.search(module.kind):
            self.wires.append(module.kind)
        method = self.program.method(module.kind, "forward")
        if isinstance(module, Outside) or method is None:
            return Made(found, module.path)
        result = self.function(method, [module, *arguments], named)
        first = next(iter(tensors([result])), None)
        if first is None:
            return Made(found, module.path)
        if _adds_to(first, found):
            return result
        made = Made((first,), module.path)
        return [made, *result[1:]] if isinstance(result, list) else made

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
        """An instance of a class from outside the file."""
        given = {k.arg or "": ast.unparse(k.value) for k in node.keywords}
        given |= {str(place): ast.unparse(each) for place, each in enumerate(node.args)}
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
            self.refused = self.refused or self.depth == 1
            return self._given_up(arguments, named)
        finally:
            self.depth -= 1
        return None

    def _given_up(self, arguments: list[object], named: dict[str, object]) -> object:
        found = tensors([*arguments, *named.values()])
        return Made(found) if found else Unknown()


def _is_instance(it: object, kinds: str) -> object:
    """Whether a value is a list or a tensor, if that is asked."""
    if isinstance(it, Tensor):
        return "Tensor" in kinds
    if isinstance(it, list):
        return "tuple" in kinds or "list" in kinds
    return Unknown(f"isinstance {kinds}")


def _has(it: object, name: object) -> bool:
    """Whether a module's __init__ or a configuration sets this attribute; other attributes may come
    from a base class."""
    if isinstance(it, Config):
        return name in it.defaults
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
    """Whether a module's result is one of its arguments, that plus something, or a norm of that sum."""
    result = bare(result)
    if any(result is bare(each) for each in given):
        return True
    if isinstance(result, Norm):
        result = bare(result.of)
    if isinstance(result, Sum):
        return any(same(side, g) for side in (result.first, result.second) for g in given) or any(
            _adds_to(side, given) for side in (result.first, result.second)
        )
    return False


# Statements, and which branch of a condition is taken.


class Interpreter(Calls):
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
                self.branch(test, body, orelse, env)
            case ast.With(body=body) | ast.Try(body=body):
                self.statements(body, env)
            case ast.For():
                self.loop(node, env)
            case ast.Expr(value=value):
                self.value(value, env)

    def branch(
        self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], env: dict[str, object]
    ) -> None:
        """Execute one side of a condition: not an error, and in a chain of cases of which none is known
        to hold the first."""
        if all(isinstance(each, ast.Raise) for each in body) and self.is_unknown(test, env):
            return self.statements(orelse, env)
        is_chain = len(orelse) == 1 and isinstance(orelse[0], ast.If)
        self.chained = is_chain or self.chained
        goes, self.chained = self.goes(test, env, self.chained), is_chain
        self.statements(body if goes else orelse, env)
        self.chained = False

    def goes(self, test: ast.expr, env: dict[str, object], unknown: bool = False) -> bool:
        """Whether a condition holds; `unknown` if that can't be decided."""
        text = ast.unparse(test)
        found = self.value(test, env)
        known = not isinstance(found, Unknown)
        if not known and text not in self.unknown:
            self.unknown.append(text)
        if isinstance(found, Unknown) and found.guess is not None:
            way = found.guess
            if text not in self.kinds:
                self.kinds.append(text)
        else:
            way = is_true(found) if known else unknown or self.is_switched_on(test, env)
        return not way if text in self.turned else way

    def is_unknown(self, test: ast.expr, env: dict[str, object]) -> bool:
        """Whether a condition can't be decided."""
        return isinstance(self.value(test, env), Unknown)

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
            case ast.Subscript(value=owner, slice=ast.Constant(value=name)):
                if isinstance(it := self.value(owner, env), dict):
                    it[name] = value
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
        """Name a module after the attribute that it is first assigned to, those of a list by number."""
        if isinstance(value, list):
            for place, each in enumerate(value):
                self.name_module(each, f"{path}.{place}")
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
