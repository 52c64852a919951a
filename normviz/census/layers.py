"""From a model's class to the placement of its norms, read from the code.

`stacks` finds the repeated layers of a class, `follow` gives a layer's forward pass on symbols, `judge` reads
branches and norms from its result, and `norm_kind` tells which norm a class is.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import lru_cache

from .interpreter import (
    Config,
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
    Viewed,
    bare,
    same,
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


@dataclass
class Sublayer:
    """A residual addition: its branches, the norm of the sum, and the scale of the skip path."""

    branches: list[Branch]
    norm_main: str | None = None
    skip_scaled: str = ""


@dataclass
class Judged:
    """A layer: its sublayers, first to last, and the norm on the stream before them, if any."""

    sublayers: list[Sublayer]
    enters: str | None = None
    kinds: list[str] = field(default_factory=list)


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


def _peel(stream: Tensor, found: Judged) -> tuple[Tensor, Sublayer | None]:
    """The input of the last sublayer, and that sublayer."""
    main = None
    if isinstance(stream, Norm):
        main = stream.name
        found.kinds.append(stream.kind)
        stream = bare(stream.of)
        if isinstance(stream, Stream):
            found.enters = main
            return stream, None
    if isinstance(stream, Scaled):
        raise Undecided(f"the stream is multiplied by {stream.by}")
    if not isinstance(stream, Sum):
        raise Undecided("what leaves the layer is not a sum of a stream and a branch")
    why = Undecided("a sum of two things that are both no stream")
    for skip, rest in ((stream.first, stream.second), (stream.second, stream.first)):
        scale, source = _unscaled(skip)
        try:
            branches = _branches(rest, source, found)
        except Undecided as error:
            why = error
            continue
        return source, Sublayer(branches, main, scale)
    if (turned := _turned(stream)) is not None:
        return _peel(Norm(main, found.kinds.pop(), turned) if main else turned, found)
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


def _unscaled(skip: Tensor) -> tuple[str, Tensor]:
    skip, scale = bare(skip), ""
    if isinstance(skip, Scaled):
        scale, skip = skip.by, bare(skip.of)
    return scale, skip


def _branches(rest: Tensor, source: Tensor, found: Judged) -> list[Branch]:
    """The branches that a sum adds to a stream; each must start from that stream."""
    if not isinstance(source, Stream | Norm | Sum):
        raise Undecided("what is added to is not a stream")
    branch = Branch()
    rest = _unwrapped(rest, source, branch, found)
    if isinstance(rest, Sum):
        both = _branches(rest.first, source, found) + _branches(rest.second, source, found)
        out, scale = branch.norm_out, branch.scaled
        return [Branch(b.norm_in, out or b.norm_out, b.inner, scale or b.scaled) for b in both]
    if not isinstance(rest, Made):
        raise Undecided("a branch is not computed from anything")
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
        case Made(of=parts):
            for part in parts:
                _walk(part, source, branch, starts, found, seen)
        case Sum(first, second):
            _walk(first, source, branch, starts, found, seen)
            _walk(second, source, branch, starts, found, seen)
        case Scaled(of=of) | Viewed(of=of):
            _walk(of, source, branch, starts, found, seen)


def placement(it: Judged) -> str:
    """The catalogue's key. Raises Undecided if sublayers differ or the placement has no key."""
    forms = {_form(s) for s in it.sublayers}
    if it.enters and len(it.sublayers) > 1:
        inner = {_form(s) for s in it.sublayers[:-1]}
        if inner == {"post"} and _form(it.sublayers[-1]) == "none":
            return "skip_norm"
    if it.enters:
        raise Undecided("a norm stands on the stream itself before the first sublayer")
    if len(forms) > 1:
        each = ", ".join(_form(s) for s in it.sublayers)
        raise Undecided(f"its sublayers differ: {each}")
    (form,) = forms
    if any(s.skip_scaled for s in it.sublayers):
        by = next(s.skip_scaled for s in it.sublayers if s.skip_scaled)
        raise Undecided(f"{form}, with the skip path multiplied by {by}")
    if form == "pre" and all(_is_sub(b) for s in it.sublayers for b in s.branches):
        return "subln"
    return form


def scales(it: Judged) -> list[str]:
    """The factors of branches and of the skip path, as source code."""
    branches = {b.scaled for s in it.sublayers for b in s.branches if b.scaled}
    skips = {s.skip_scaled for s in it.sublayers if s.skip_scaled}
    return [f"branches are multiplied by {by}" for by in sorted(branches)] + [
        f"the skip path is multiplied by {by}" for by in sorted(skips)
    ]


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
        return "layernorm" if "nn.LayerNorm(" in code else None
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
