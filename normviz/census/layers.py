"""From a model's class to the placement of its norms, read from the code.

`stacks` finds the repeated layers of a class, `follow` gives a layer's forward pass on symbols, `judge` reads
branches and norms from its result, and `norm_kind` tells which norm a class is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from .interpreter import (
    ATTENTION,
    KIND,
    Config,
    Function,
    Interpreter,
    Made,
    Module,
    Norm,
    Outside,
    Program,
    ReturnSignal,
    Scaled,
    Stopped,
    Stream,
    Sum,
    Tensor,
    Unknown,
    Viewed,
    bare,
    same,
    tensors,
)

# A model's stacks: the repeated class, and the norm after the stack.


class Follow(Interpreter):
    """A run that recognises norms."""

    def norm_kind(self, kind: str, arguments: dict[str, str]) -> str | None:
        return norm_kind(self.program, kind, arguments)


@dataclass(frozen=True)
class Stack:
    """Class of the layer, class that holds the stack, and the path to it from the model."""

    layer: str
    holder: str
    way: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Classes of other layers of the same stack, without attention."""

    @property
    def kind(self) -> str:
        """The class whose forward pass has the layer: it or, for a layer without a class, the holder."""
        return self.layer or self.holder


def stacks(program: Program, kind: str, towers: bool = False) -> list[Stack]:
    """Stacks below a class, nearest first, without vision and audio towers unless `towers`. Of a stack
    of several classes of layers, those with attention count."""
    found: list[Stack] = []
    loose: list[Stack] = []
    seen: set[str] = {kind}
    todo: list[tuple[str, tuple[str, ...]]] = [(kind, (kind,))]
    while todo:
        name, way = todo.pop(0)
        every = repeated(program, name)
        layers = [each for each in every if is_layer(program, each)]
        layers = [each for each in layers if not any(each in inner(program, it) for it in layers)]
        attending = [each for each in layers if attends(program, each)] or layers
        others = tuple(each for each in layers if each not in attending)
        found += [Stack(layer, name, way, others) for layer in attending]
        if not layers:
            loose += [Stack(it, name, way) for it in every if attends(program, it)]
            if indexes_lists(program, name):
                loose.append(Stack("", name, way))
        for part in constructed(program, name, towers):
            if part not in seen and (towers or not TOWER.search(part)):
                seen.add(part)
                if part not in layers:
                    todo.append((part, (*way, part)))
    return found or loose[-1:]


def _made_by(program: Program, kind: str) -> list[ast.AST]:
    """The bodies of __init__ and of the methods of self that it calls."""
    found: list[ast.AST] = []
    method = program.method(kind, "__init__")
    for node in ast.walk(method) if method else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self."):
            name = ast.unparse(node.func).removeprefix("self.")
            if name != "post_init" and (other := program.method(kind, name)):
                found.append(other)
    return [method, *found] if method else []


def repeated(program: Program, kind: str) -> list[str]:
    """Classes of the file that a class repeats in a list."""
    found: list[str] = []
    for body in _made_by(program, kind):
        local = _local_classes(program, body)
        for node in ast.walk(body):
            if isinstance(node, ast.ListComp | ast.For | ast.GeneratorExp):
                for call in ast.walk(node):
                    if isinstance(call, ast.Call):
                        found += _classes(program, call.func, local)
    return list(dict.fromkeys(found))


def _local_classes(program: Program, body: ast.AST) -> dict[str, list[str]]:
    """The classes that a local name can be."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            called = isinstance(node.value, ast.Call)
            named = [] if called else _classes(program, node.value, {})
            found.setdefault(node.targets[0].id, []).extend(named)
    return found


def _classes(program: Program, node: ast.expr, local: dict[str, list[str]]) -> list[str]:
    """The classes that an expression can be: a name, an entry of a table, or one of two."""
    match node:
        case ast.Name(id=name) if name in program.classes:
            return [name]
        case ast.Name(id=name) if name in local:
            return local[name]
        case ast.Subscript(value=ast.Name(id=name)):
            table = program.constants.get(name)
            values = table.values if isinstance(table, ast.Dict) else []
            return [kind for value in values for kind in _classes(program, value, {})]
        case ast.IfExp(body=body, orelse=orelse):
            return _classes(program, body, local) + _classes(program, orelse, local)
    return []


def inner(program: Program, kind: str) -> set[str]:
    """Classes of the file that an __init__ or those of its parts name, in annotations too."""
    found: set[str] = set()
    todo = [kind]
    while todo:
        method = program.method(todo.pop(), "__init__")
        names = {n.id for n in ast.walk(method) if isinstance(n, ast.Name)} if method else set()
        for name in names:
            if isinstance(table := program.constants.get(name), ast.Dict):
                names = names | {n.id for n in ast.walk(table) if isinstance(n, ast.Name)}
        new = {name for name in names if name in program.classes} - found - {kind}
        found |= new
        todo += new
    return found


def attends(program: Program, kind: str) -> bool:
    """Whether a layer has attention, by the names of its parts."""
    return any(ATTENTION.search(name) for name in inner(program, kind))


def indexes_lists(program: Program, kind: str) -> bool:
    """Whether a class has no layer of its own: its forward loops over lists of attentions and norms."""
    method = program.method(kind, "forward")
    return method is not None and _indexed_loop(method) is not None


def _indexed_loop(method: ast.AST) -> ast.For | None:
    """A loop that calls entries of several lists of self: `self.norms[i](x + self.attentions[i](x))`."""
    for loop in ast.walk(method):
        if isinstance(loop, ast.For):
            lists = {
                ast.unparse(node.func.value)
                for node in ast.walk(loop)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
            }
            if len({name for name in lists if name.startswith("self.")}) > 2:
                return loop
    return None


def is_layer(program: Program, kind: str) -> bool:
    """Whether a class is a block of a stack, by its name: not an expert, a head or a norm."""
    ends = ("Layer", "Block", "DecoderLayer", "EncoderLayer")
    return kind.endswith(ends) and program.method(kind, "forward") is not None


TOWER = re.compile(r"Vision|Audio|Image")
TOWER_CONFIG = re.compile(r"(vision|audio|image)_config")


def constructed(program: Program, kind: str, towers: bool = True) -> list[str]:
    """Classes of the file that a class's __init__ constructs; without `towers` none from the
    configuration of a vision or audio tower."""
    found: list[str] = []
    for body in _made_by(program, kind):
        local = _local_classes(program, body)
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and (
                towers or not TOWER_CONFIG.search(ast.unparse(node))
            ):
                func = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                found += _classes(program, func, local)
    return list(dict.fromkeys(found))


@dataclass
class Followed:
    """A layer's result, its undecided conditions, the modules that replace the residual addition, and
    the conditions under which another layer of the stack has no attention."""

    result: Tensor
    unknown: tuple[str, ...]
    wires: tuple[str, ...]
    kinds: tuple[str, ...] = ()


def follow(
    program: Program,
    stack: Stack,
    turned: Iterable[str] = (),
    changes: dict[str, object] | None = None,
) -> Followed:
    """A layer's forward pass on symbols, with `changes` to the configuration's defaults and undecided
    conditions `turned` (inverted). Raises Stopped if it has no result."""
    run = Follow(program, frozenset(turned))
    config = Config({**program.config_for(stack.kind), **(changes or {})})
    module = run.made(stack.kind, "layer", [config], _of_a_kind(program, stack.kind))
    method = program.method(stack.kind, "forward")
    if not isinstance(module, Module) or method is None:
        raise Stopped
    if not stack.layer:
        result = _one_pass(run, module, method)
    else:
        first = [a.arg for a in method.args.args][1:2]
        env = run.function(method, [module, Stream()], {}) if first else None
        found = tensors(env.values()) if isinstance(env, dict) else env
        result = found[0] if isinstance(found, list | tuple) and found else found
    if not isinstance(result, Tensor) or (changes and run.refused):
        raise Stopped
    return Followed(result, tuple(run.unknown), tuple(run.wires), tuple(run.kinds))


def _of_a_kind(program: Program, kind: str) -> dict[str, object]:
    """Arguments of a layer's __init__ that name its kind: the model passes one for each layer."""
    method = program.method(kind, "__init__")
    names = [a.arg for a in method.args.args] if method else []
    return {name: Unknown(name) for name in names if KIND.search(name)}


def _one_pass(run: Follow, module: Module, method: Function) -> object:
    """What one pass of a model's loop makes of the tensor that it hands on to the next."""
    name, loop, env = _before_loop(run, module, method)
    env[name] = Stream()
    run.bind(loop.target, Unknown("index"), env)
    run.statements(loop.body, env)
    return env[name]


def _before_loop(
    run: Follow, module: Module, method: Function
) -> tuple[str, ast.For, dict[str, object]]:
    """The name of the tensor that a model's loop hands on, the loop, and the values before it."""
    loop = _indexed_loop(method)
    names = [a.arg for a in method.args.args]
    env: dict[str, object] = {**dict.fromkeys(names), names[0]: module}
    env[names[1]] = Made(())
    before = [node for node in method.body if node.lineno < (loop.lineno if loop else 0)]
    assert loop is not None
    run.statements(before, env)
    bound = {
        n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    carried = [name for name in bound if isinstance(env.get(name), Tensor)]
    if len(carried) != 1:
        raise Stopped
    return carried[0], loop, env


class Entered(Exception):
    """A model's forward pass has come to its first layer."""

    def __init__(self, tensor: object) -> None:
        super().__init__()
        self.tensor = tensor


class Enter(Follow):
    """A run of a whole model up to the first layer of a stack."""

    def __init__(self, program: Program, layer: str) -> None:
        super().__init__(program)
        self.layer = layer

    def statement(self, node: ast.stmt, env: dict[str, object]) -> None:
        if not isinstance(node, ast.Raise):  # an error about inputs that are missing
            super().statement(node, env)

    def through(
        self, module: Module | Outside, arguments: list[object], named: dict[str, object]
    ) -> object:
        if module.kind == self.layer:
            method = self.program.method(self.layer, "forward")
            name = method.args.args[1].arg if method else ""
            raise Entered(arguments[0] if arguments else named.get(name))
        return super().through(module, arguments, named)


def embed_norm(
    program: Program, stack: Stack, changes: dict[str, object] | None = None
) -> str | None:
    """yes or no: whether a norm acts on the embedding before the first layer; None if the model's
    forward pass can't be followed up to there."""
    run = Enter(program, stack.layer)
    config = Config({**program.config_for(stack.way[0]), **(changes or {})})
    try:
        module = run.made(stack.way[0], "model", [config], {})
        if not isinstance(module, Module):
            return None
        if stack.layer:
            _call(run, module)
            return None
        holder = run.made(stack.holder, "model", [config], {})
        method = program.method(stack.holder, "forward")
        if not isinstance(holder, Module) or method is None:
            return None
        name, _, env = _before_loop(run, holder, method)
        start = env[name]
    except Entered as entered:
        start = entered.tensor
    except (ReturnSignal, Stopped, RecursionError):
        return None
    if not isinstance(start, Tensor):
        return None
    return "yes" if _has_norm(start) else "no"


def _call(run: Follow, module: Module) -> None:
    """A model's forward pass on tokens, pixels or sound, all other inputs as their defaults."""
    if method := run.program.method(module.kind, "forward"):
        given = [a.arg for a in method.args.args if INPUT.search(a.arg)]
        run.function(method, [module], {name: Made(()) for name in given})


INPUT = re.compile(r"input_ids|pixel_values|input_values|input_features|^inputs$")
"""Names of the inputs of models."""


def _has_norm(tensor: Tensor) -> bool:
    """Whether a tensor was computed from the output of a norm."""
    match tensor:
        case Norm():
            return True
        case Made(of=parts):
            return any(_has_norm(part) for part in parts)
        case Sum(first, second):
            return _has_norm(first) or _has_norm(second)
        case Scaled(of=of) | Viewed(of=of):
            return _has_norm(of)
    return False


def mixes_by_sinkhorn(program: Program, stack: Stack) -> bool:
    """Whether the layer's streams are mixed by matrices that Sinkhorn's iteration makes doubly
    stochastic, as in mHC, by a name in its code (not its comments). Raises Stopped if the layer can't be
    followed."""
    wires = follow(program, stack).wires
    return bool(wires) and all(
        kind in program.classes and _names(program.classes[kind], "sinkhorn") for kind in wires
    )


def _names(kind: ast.ClassDef, word: str) -> bool:
    """Whether the code of a class has a name with this word."""
    names = (getattr(n, "attr", "") or getattr(n, "id", "") for n in ast.walk(kind))
    return any(word in str(name).lower() for name in names)


def wraps_language_model(program: Program, kind: str) -> bool:
    """Whether a model's text is read by a model of its own, which `AutoModel` makes: it has a row of its
    own, and what the class repeats is no layer of it."""
    for name in {kind, *inner(program, kind)}:
        method = program.method(name, "__init__")
        for node in ast.walk(method) if method else ():
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if text.startswith("AutoModel") and "text_config" in text:
                return True
    return False


def final_norm(
    program: Program, stack: Stack, changes: dict[str, object] | None = None
) -> str | None:
    """yes or no: whether a norm follows the loop over the layers, in the class with the loop or in
    those that hold it, without the class with the head; None if the first has no such loop."""
    way = [*reversed(stack.way[-2:] if len(stack.way) < 3 else stack.way[1:])]
    for place, kind in enumerate(way):
        method = program.method(kind, "forward")
        if method is None:
            continue
        modules = _attributes(program, kind, changes)
        calls = (
            _after_loop(method)
            if place == 0
            else _after_call(method, way[place - 1], program, kind)
        )
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
    run, config = Follow(program), Config({**program.config_for(kind), **(changes or {})})
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


def _after_call(method: ast.AST, inner: str, program: Program, kind: str) -> list[str] | None:
    """Attributes of self that are called after the class that has the stack."""
    holders = {
        name
        for name, value in _attributes(program, kind).items()
        if isinstance(value, Module) and value.kind == inner
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


# The placement, from the symbolic result of a forward pass.

QK = re.compile(r"(q|k|qk|query|key)_?(layer_?norm|norm|ln)s?")
"""Names of norms on queries and keys; q_a_norm and the like act before these are computed."""


class Undecided(Exception):
    """The rules do not decide; the message names the reason."""


@dataclass
class Branch:
    """One branch: the norm before it, the norm after it, norms inside, and its scale."""

    norm_in: str | None = None
    norm_out: str | None = None
    inner: list[Norm] = field(default_factory=list)
    scaled: str = ""
    parts: set[str] = field(default_factory=set)
    """Paths of the modules that compute it."""
    root: Tensor | None = None
    """What it computes, before the norm after it and its scale."""


@dataclass
class Sublayer:
    """A residual addition: its branches, the norm of the sum, and the scale of the skip path."""

    branches: list[Branch]
    norm_main: str | None = None
    skip_scaled: str = ""
    by_number: bool = False
    """Whether what scales the skip path is one number."""


@dataclass
class Judged:
    """A layer: its sublayers, first to last, and the norm on the stream before them, if any."""

    sublayers: list[Sublayer]
    enters: str | None = None
    kinds: list[str] = field(default_factory=list)
    scaled: str = ""
    """What the layer multiplies its result by, a number."""


def judge(result: Tensor) -> Judged:
    """Decompose a layer's result. Raises Undecided."""
    found = Judged([])
    stream = bare(result)
    while not isinstance(stream, Stream):
        stream, sublayer = _peel(stream, found)
        if sublayer is not None:
            found.sublayers.insert(0, sublayer)
    if not found.sublayers:
        raise Undecided("no residual addition was found")
    return found


TURNS = 2
"""A sum of three terms has three ways to put its parentheses: one is written, two are left to try."""


def _peel(stream: Tensor, found: Judged, turns: int = TURNS) -> tuple[Tensor, Sublayer | None]:
    """The input of the last sublayer, and that sublayer."""
    main = None
    if isinstance(stream, Norm):
        main = stream.name
        found.kinds.append(stream.kind)
        stream = bare(stream.of)
        if isinstance(stream, Stream):
            found.enters = main
            return stream, None
    if isinstance(stream, Scaled) and stream.number and main is None and not found.sublayers:
        found.scaled = stream.by
        stream = bare(stream.of)
    if isinstance(stream, Scaled):
        raise Undecided(f"the stream is multiplied by {stream.by}")
    if not isinstance(stream, Sum):
        raise Undecided("what leaves the layer is not a sum of a stream and a branch")
    why = Undecided("a sum of two things that are both no stream")
    for skip, rest in ((stream.first, stream.second), (stream.second, stream.first)):
        scale, number, source = _unscaled(skip)
        try:
            branches = _branches(rest, source, found)
        except Undecided as error:
            why = error
            continue
        return source, Sublayer(branches, main, scale, number)
    if turns and (turned := _turned(stream)) is not None:
        again = Norm(main, found.kinds.pop(), turned) if main else turned
        return _peel(again, found, turns - 1)
    raise why


def _turned(stream: Sum) -> Sum | None:
    """(a + b) + c as a + (b + c): the parentheses do not show which term is the stream."""
    for side, other in ((stream.first, stream.second), (stream.second, stream.first)):
        side = bare(side)
        if isinstance(side, Sum):
            for kept, moved in ((side.first, side.second), (side.second, side.first)):
                if isinstance(bare(kept), Stream | Norm) and not isinstance(bare(moved), Stream):
                    return Sum(kept, Sum(moved, other))
    return None


def _unscaled(skip: Tensor) -> tuple[str, bool, Tensor]:
    """The scale of a skip path, whether it is one number, and what is scaled."""
    skip = bare(skip)
    if isinstance(skip, Scaled):
        return skip.by, skip.number, bare(skip.of)
    return "", False, skip


def _branches(rest: Tensor, source: Tensor, found: Judged) -> list[Branch]:
    """The branches that a sum adds to a stream; each must start from that stream."""
    if not isinstance(source, Stream | Norm | Sum):
        raise Undecided("what is added to is not a stream")
    branch = Branch()
    rest = _unwrapped(rest, source, branch, found)
    if isinstance(rest, Sum):
        both = _branches(rest.first, source, found) + _branches(rest.second, source, found)
        out, scale = branch.norm_out, branch.scaled
        return [
            Branch(b.norm_in, out or b.norm_out, b.inner, scale or b.scaled, b.parts, b.root)
            for b in both
        ]
    if isinstance(rest, Stream):
        raise Undecided("the stream is added to a sum that has it already")
    if not isinstance(rest, Made):
        raise Undecided("a branch is not computed from anything")
    branch.root = rest
    starts: set[str | None] = set()
    _walk(rest, source, branch, starts, found, set())
    if not starts:
        raise Undecided("a branch does not start from the stream that it is added to")
    if len(starts) > 1:
        raise Undecided("a branch reads the stream both with and without a norm, or through two")
    (branch.norm_in,) = starts
    return [branch]


def _unwrapped(rest: Tensor, source: Tensor, branch: Branch, found: Judged) -> Tensor:
    """A branch without the norm after it and without its scale."""
    rest = bare(rest)
    while isinstance(rest, Scaled) or (isinstance(rest, Norm) and not _is_from(rest, source)):
        if isinstance(rest, Norm):
            if branch.norm_out is not None:
                raise Undecided("two norms behind a branch")
            found.kinds.append(rest.kind)
            branch.norm_out = rest.name
        else:
            branch.scaled = rest.by
        rest = bare(rest.of)
    return Made((rest.first, rest.second)) if isinstance(rest, Sum) and _is_inner(rest) else rest


def _is_inner(it: Sum) -> bool:
    """Whether one term depends on the other: an addition inside one branch, not two branches."""
    return _holds(it.first, it.second) or _holds(it.second, it.first)


def _holds(tensor: Tensor, part: Tensor) -> bool:
    """Whether a tensor depends on another."""
    if same(tensor, part):
        return True
    match tensor:
        case Made(of=parts):
            return any(_holds(each, part) for each in parts)
        case Sum(first, second):
            return _holds(first, part) or _holds(second, part)
        case Norm(of=of) | Scaled(of=of) | Viewed(of=of):
            return _holds(of, part)
    return False


def _is_from(norm: Norm, source: Tensor) -> bool:
    return same(norm.of, source)


def _walk(
    tensor: Tensor,
    source: Tensor,
    branch: Branch,
    starts: set[str | None],
    found: Judged,
    seen: set[int],
) -> None:
    """Follow a branch back to the stream, collecting its norms."""
    if id(tensor) in seen:
        return
    seen.add(id(tensor))
    if same(tensor, source):
        starts.add(None)
        return
    match tensor:
        case Norm(name, kind, of) if same(of, source):
            starts.add(name)
            found.kinds.append(kind)
        case Norm(of=of):
            branch.inner.append(tensor)
            _walk(of, source, branch, starts, found, seen)
        case Made(of=parts, by=by):
            branch.parts.add(by)
            for part in parts:
                _walk(part, source, branch, starts, found, seen)
        case Sum(first, second):
            _walk(first, source, branch, starts, found, seen)
            _walk(second, source, branch, starts, found, seen)
        case Scaled(of=of) | Viewed(of=of):
            _walk(of, source, branch, starts, found, seen)


def placement(it: Judged) -> str:
    """The catalogue's key. Raises Undecided if sublayers differ or the placement has no key."""
    if it.enters and len(it.sublayers) > 1:
        inner = {_form(s) for s in it.sublayers[:-1]}
        if inner == {"post"} and _form(it.sublayers[-1]) == "none":
            return "skip_norm"
    if it.enters:
        raise Undecided("a norm stands on the stream itself before the first sublayer")
    form = _common_form(it)
    factors = [(s.skip_scaled, s.by_number) for s in it.sublayers if s.skip_scaled]
    factors += [(it.scaled, True)] if it.scaled else []
    for by, is_number in factors:
        # A number that scales a stream that is only read through norms is a factor of the branches.
        if not (is_number and form in READ_THROUGH_NORMS):
            raise Undecided(f"{form}, with the skip path multiplied by {by}")
    if form == "pre" and all(_is_sub(b) for s in it.sublayers for b in s.branches):
        return "subln"
    return form


READ_THROUGH_NORMS = ("pre", "sandwich", "parallel", "parallel_two")


def _common_form(it: Judged) -> str:
    """The form of all sublayers, else of attention and feed-forward. Raises Undecided."""
    each = [_form(s) for s in it.sublayers]
    if len(each) > 1:  # two parts of one sublayer, such as routed and shared experts
        each = ["pre" if form == "parallel" else form for form in each]
    main = {form for form, s in zip(each, it.sublayers, strict=True) if is_main(s)}
    both = all(any(_has_part(s, word) for s in it.sublayers) for word in MAIN)
    forms = main if len(set(each)) > 1 and both and len(main) == 1 else set(each)
    if len(forms) > 1:
        raise Undecided(f"its sublayers differ: {', '.join(each)}")
    (form,) = forms
    return form


MAIN = (
    re.compile(r"attn|attention"),
    re.compile(r"mlp|ffn|feed_?forward|moe|experts|fc\d|intermediate"),
)
"""In the names of modules of attention, and of a feed-forward network."""


def _has_part(it: Sublayer, word: re.Pattern[str]) -> bool:
    paths = (part for branch in it.branches for part in branch.parts)
    return any(word.search(path.lower()) for path in paths)


def is_main(it: Sublayer) -> bool:
    """Whether a sublayer is attention or feed-forward, by the names of its modules."""
    return any(_has_part(it, word) for word in MAIN)


def extra(it: Judged) -> list[str]:
    """The forms of sublayers that are neither attention nor feed-forward, where they differ."""
    forms = [_form(s) for s in it.sublayers]
    if len(set(forms)) == 1:
        return []
    return [form for form, s in zip(forms, it.sublayers, strict=True) if not is_main(s)]


def scales(it: Judged) -> list[str]:
    """The factors of branches and of the skip path, as source code."""
    branches = {b.scaled for s in it.sublayers for b in s.branches if b.scaled}
    skips = {s.skip_scaled for s in it.sublayers if s.skip_scaled}
    return (
        [f"branches are multiplied by {by}" for by in sorted(branches)]
        + [f"the skip path is multiplied by {by}" for by in sorted(skips)]
        + ([f"the layer's result is multiplied by {it.scaled}"] if it.scaled else [])
    )


def _is_sub(branch: Branch) -> bool:
    """Whether a norm precedes the branch's last linear map, as in Sub-LN."""
    return any("sub" in norm.name.rsplit(".", 1)[-1].lower() for norm in branch.inner)


FORMS = {
    (True, False, False): "pre", (False, False, True): "post", (True, True, False): "sandwich",
    (False, True, False): "resp", (True, False, True): "pre_post_main",
    (False, False, False): "none",
}  # fmt: skip
"""By (norm before the branch, norm after it, norm on the sum)."""


def _form(it: Sublayer) -> str:
    shapes = {(b.norm_in is not None, b.norm_out is not None) for b in it.branches}
    if len(shapes) > 1:
        raise Undecided("parallel branches whose norms differ")
    (shape,) = shapes
    form = FORMS.get((*shape, it.norm_main is not None))
    if form is None:
        raise Undecided("norms behind the branch and on the sum")
    if len(it.branches) == 1:
        return form
    if form != "pre":
        raise Undecided(f"{len(it.branches)} parallel branches, {form}")
    names = {b.norm_in for b in it.branches}
    if len(names) == 1:
        return "parallel"
    return "parallel_two" if len(names) == len(it.branches) else "parallel"


def other_norms(program: Program, kind: str) -> str:
    """Names of norms in a layer's code that the catalogue does not have, such as GroupNorm."""
    code = "\n".join(ast.unparse(program.classes[name]) for name in (kind, *inner(program, kind)))
    return ", ".join(sorted(set(re.findall(r"\b(?:Group|Batch|Instance)Norm(?:[123]d)?\b", code))))


def is_qk(norm: Norm) -> bool:
    """Whether a norm inside a branch acts on queries or keys, by its name."""
    return QK.fullmatch(norm.name.rsplit(".", 1)[-1].lower()) is not None


def qk_norm(it: Judged) -> str:
    """none, head (each head separately) or full (all heads together), from norms on q and k."""
    found = [
        "head" if _is_viewed(norm.of) or "perhead" in norm.kind else "full"
        for sublayer in it.sublayers
        for branch in sublayer.branches
        for norm in branch.inner
        if is_qk(norm)
    ]
    return "none" if not found else ("head" if "head" in found else "full")


def _is_viewed(tensor: Tensor) -> bool:
    """Whether a tensor was reshaped into heads."""
    match tensor:
        case Viewed():
            return True
        case Made(of=parts):
            return any(_is_viewed(part) for part in parts)
        case Sum(first, second):
            return _is_viewed(first) or _is_viewed(second)
        case Scaled(of=of) | Norm(of=of):
            return _is_viewed(of)
    return False


# Which norm a class is: what it subtracts, and which parameters it learns.

NONE = ("False", "None")
CENTRES = re.compile(r"-\s*(self\.)?\w*(mean|mu)\b|\.var\(|layer_norm\(|std\(")
NORMALISES = re.compile(r"rsqrt|sqrt\(|-0\.5|layer_norm\(|rms_norm\(|F\.normalize")
NAMED = re.compile(r"Norm(1P|2d|PerHead|Gated|Layer)?$")
ZERO_CENTRED = re.compile(r"1(\.0)?\s*\+\s*self\.weight|self\.weight[\w.()]*\s*\+\s*1")


def norm_kind(program: Program, kind: str, arguments: dict[str, str]) -> str | None:
    """Key of the norm (one of `catalog.NORMS`, or layernorm_1p); None if the class is not a norm."""
    if kind in ("rms_norm", "layer_norm"):
        return {"rms_norm": "rmsnorm_noaffine", "layer_norm": "layernorm_nonparam"}[kind]
    if kind not in program.classes:
        return _outside(kind, arguments)
    if not NAMED.search(kind):
        return None  # RobertaPreLayerNormAttention
    code = _code(program, kind)
    bases = program.bases(kind)
    if not NORMALISES.search(code) and not any(_outside(b.split(".")[-1], {}) for b in bases):
        wraps = "nn.LayerNorm(" in code and not constructed(program, kind)
        return "layernorm" if wraps else None
    centred = CENTRES.search(code) or any("LayerNorm" in base for base in bases)
    name = "layernorm" if centred else "rmsnorm"
    if ZERO_CENTRED.search(code):
        return f"{name}_1p"
    inherits = any("Norm" in base for base in bases)
    if arguments.get("with_scale") in NONE or ("self.weight" not in code and not inherits):
        return "layernorm_nonparam" if centred else "rmsnorm_noaffine"
    if centred and "self.bias" not in code and not inherits:
        return "layernorm_nobias"
    return name


@lru_cache(maxsize=64)
def _code(program: Program, kind: str) -> str:
    """Source of the class and its bases in the file, without comments and docstrings."""
    parts = []
    for name in (kind, *program.bases(kind)):
        if node := program.classes.get(name):
            body = [
                part
                for part in ast.walk(node)
                if isinstance(part, ast.Assign | ast.AnnAssign | ast.Return | ast.AugAssign)
            ]
            parts += [ast.unparse(part) for part in body]
    return "\n".join(parts)


def _outside(kind: str, arguments: dict[str, str]) -> str | None:
    """Key of a norm of PyTorch."""
    if kind.endswith("RMSNorm"):
        bare = arguments.get("elementwise_affine") in NONE
        return "rmsnorm_noaffine" if bare else "rmsnorm"
    if kind.endswith("LayerNorm"):
        if arguments.get("elementwise_affine") in NONE:
            return "layernorm_nonparam"
        return "layernorm_nobias" if arguments.get("bias") in NONE else "layernorm"
    return None
