"""The flow of data through a model's blocks, as symbols that are then judged.

One forward pass in evaluation mode runs under a torch function mode. Each operation gives its result a
symbol: a norm, a sum, a scaled tensor, or something made of other tensors. Each block starts with a fresh
stream, so that its result shows what it does to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from . import norms, stack
from .judge import Judged, Undecided, judge
from .symbols import Made, Normed, Scaled, Stream, Sum, Symbol, Viewed, bare, sources

MATRIX = ("linear", "matmul", "mm", "mv", "einsum", "tensordot", "conv")
"""Parts of the names of operations that multiply by a matrix, torch's and those of other libraries."""
ATTENTION = {"scaled_dot_product_attention", "multi_head_attention_forward"}
LIKE = {"expand_as", "view_as", "reshape_as", "type_as", "to"}
"""Operations that keep the values of their first tensor and read no values of another."""
SAME = LIKE | {
    "bfloat16", "double", "float", "half", "type", "cpu", "clone", "contiguous", "detach", "identity",
    "requires_grad", "pin_memory", "wait_tensor", "masked_fill", "clamp", "clamp_min", "clamp_max",
    "dropout", "alpha_dropout", "feature_dropout", "dropout1d", "dropout2d", "relu_drop",
}  # fmt: skip
"""Operations that count as keeping a tensor's values, by their names without underscores around them."""
SHAPED = {
    "flatten", "permute", "reshape", "squeeze", "transpose", "unflatten", "unsqueeze", "view", "expand",
    "movedim", "moveaxis", "swapaxes", "swapdims", "t", "roll", "pad", "get", "repeat", "ravel",
    "atleast_2d", "atleast_3d", "rearrange", "as_strided", "repeat_interleave",
}  # fmt: skip
PARTS = {"chunk", "split", "unbind", "tensor_split"}
NORM_CALLS = {
    "layer_norm": "layernorm", "rms_norm": "rmsnorm", "normalize": "l2", "group_norm": "groupnorm",
    "batch_norm": "batchnorm", "rms_norm by hand": "rmsnorm", "layer_norm by hand": "layernorm",
    "normalize by hand": "l2",
}  # fmt: skip
"""Functions that are norms, with their keys: PyTorch's, and what is written out in a block."""
REDUCES = {"mean", "var", "var_mean", "std", "norm", "vector_norm", "linalg_vector_norm", "sum"}  # fmt: skip
"""Operations that may give one number for the channels of a token."""
POINTWISE = {
    "add", "mul", "div", "truediv", "rtruediv", "rdiv", "radd", "rmul", "pow", "sqrt", "rsqrt", "reciprocal",
    "clamp", "clamp_min", "maximum",
}  # fmt: skip
"""Operations on that number that leave it one."""
MATRICES = {"linear", "attention", "tokens", "hidden"}
STATISTIC, ROOT, LENGTH = "statistic", "root", "length"
"""What a number for the channels of a token is: a mean or sum, the root of one, or a vector's length."""
NOT_NORMS = (
    nn.ModuleList, nn.ModuleDict, nn.Identity, nn.Dropout, nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding,
)  # fmt: skip
COPIES = {"where", "copy", "set", "index_copy"}
"""Operations that keep the values of their one tensor that depends on the stream."""
MIXES = {
    "cumsum", "cumprod", "logcumsumexp", "cummax", "lstm", "gru", "rnn_tanh", "rnn_relu",
}  # fmt: skip
"""Operations along the tokens, beside convolutions, poolings and Fourier transforms."""


@dataclass(frozen=True)
class Product:
    """A product of two tensors that both depend on the stream: queries and keys, or weights and values."""

    left: Symbol
    right: Symbol
    shapes: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass
class BlockTrace:
    """One block: its place in the stack, the symbol of its result, and what the judge says of it.

    module    which of the stack's modules it is a call of
    before    the symbol of what entered, from the values outside of the blocks
    judged    its sublayers; None where the rules do not decide, and `why` has the reason
    products  of queries and keys, and of weights and values
    made      paths of the modules whose output a symbol is, by its id, the outermost last
    reads     modules that read the stream first: path, and the symbol of its result
    ended     whether its call came to its end
    hidden    paths of modules inside whose operations could not run on the meta device
    weights   names of the matrices that made a symbol, by its id
    """

    number: int
    module: int = 0
    result: Symbol = field(default_factory=Stream)
    before: Symbol | None = None
    judged: Judged | None = None
    why: str = ""
    products: list[Product] = field(default_factory=list)
    made: dict[int, list[str]] = field(default_factory=dict)
    reads: list[tuple[str, Symbol]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    weights: dict[int, str] = field(default_factory=dict)
    ended: bool = False

    @property
    def norm_names(self) -> set[str]:
        """The norms that its result was computed with: paths of modules, or calls of functions."""
        return {symbol.name for symbol in sources(self.result) if isinstance(symbol, Normed)}


@dataclass
class StackTrace:
    """One stack: its blocks in the order in which they ran, its stream, and what stands around it.

    stream    where it is in a call of a block; None if no tensor leaves a block as one entered it
    embed_norm, final_norm  paths of the norms on what enters the first block and on what leaves the last
    ignored   whether no result of the model is computed from the final norm's
    goes_on   what reads the end of the last block further on: the blocks of another stack, or a norm after
              other operations, such as a pooling; empty if neither does
    between   the path of a norm between the blocks, outside of them
    twins     blocks on the meta device that were not run, because their modules are those of another block
    mixes     why what enters a block is not what left the one before it, or empty
    runs      how many calls of its blocks the pass had
    shape     of the stream as it leaves the first block that ran; empty where there is none
    call      the first call of a block
    layers    how many blocks it has; of a stack that is read as a whole, how many attentions
    """

    stack: stack.Stack
    stream: stack.Stream | None = None
    blocks: list[BlockTrace] = field(default_factory=list)
    embed_norm: str | None = None
    final_norm: str | None = None
    ignored: bool = False
    goes_on: Literal["", "blocks", "norm"] = ""
    between: str | None = None
    mixes: str = ""
    twins: dict[int, int] = field(default_factory=dict)
    runs: int = 0
    shape: tuple[int, ...] = ()
    call: stack.Call | None = None
    layers: int = 0

    @property
    def alone(self) -> bool:
        """Whether it is all of the model, so that what follows its blocks is not seen."""
        return self.layers == 1 if self.stack.single else not self.stack.path


@dataclass
class Trace:
    """What one forward pass of a model showed.

    norms   the norms among its modules, by path
    scales  the parameters that scale a tensor, by name
    error   why the forward pass ended early, or empty
    ran     paths of the modules that were called
    used    names of the parameters that an operation read
    lines   where each norm is called first: file and line of the code that calls it
    run     calls the model on the small input again
    """

    stacks: list[StackTrace]
    norms: dict[str, norms.ProbedNorm]
    error: str = ""
    scales: dict[str, nn.Parameter] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    lines: dict[str, str] = field(default_factory=dict)
    run: Callable[[], object] = lambda: None

    @property
    def main(self) -> StackTrace:
        """The stack that ran with most blocks, of equals the last one."""
        ran = [each for each in self.stacks if each.runs]
        return max(reversed(ran), key=lambda each: each.layers)


class Untraced(ValueError):
    """No block of the model ran; the message is one sentence."""


def trace(
    model: nn.Module,
    run: Callable[[], object],
    stacks: Iterable[stack.Stack],
) -> Trace:
    """Follow a forward pass. `run` calls the model on a small input.

    The model's state, mode and random generators stay as they are. Raises Untraced.
    """
    traces = [StackTrace(each, twins=twins_of(each)) for each in stacks]
    known = dict[str, norms.ProbedNorm]()
    with _prepared(model, [each.stack for each in traces]) as hidden, ExitStack() as after:
        for each in traces:
            after.callback(_spare(each))
            for block in set(each.stack.blocks):
                after.callback(_through_hooks(block))
        error = _plain(model, run, traces, known)
        if not any(each.runs for each in traces):
            raise Untraced(
                f"no block of {type(model).__name__} ran on a small input: {error}; give an input that the "
                "model takes: inputs=..., or return it beside the model from the function"
            )
        follow = _Follow(model, traces, known, hidden)
        with follow.hooks(), follow:
            _attempt(run)
    for each in traces:
        follow.judge(each)
    for each in traces:
        each.goes_on = follow.goes_on(each)
    return Trace(traces, known, error, follow.scales, follow.ran, follow.used, follow.lines, run)


def _attempt(run: Callable[[], object]) -> str:
    """Run it; what went wrong in one line, or empty."""
    try:
        run()
    except Exception as error:  # whatever a stranger's code raises; the blocks that ran count
        return first_line(error)
    return ""


def first_line(error: Exception) -> str:
    """The class of an error and the first line of what it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160] if lines else ''}"


def multiplies(name: str) -> bool:
    """Whether an operation is a product with a matrix, by its name."""
    return any(part in name for part in MATRIX)


MANY = 3
"""Blocks that are alike; of more, the first two and the last one run on the meta device."""
NUMBERED = {"layer_idx", "layer_id", "layer_number", "layer_index"}
"""Attributes that only tell a block its place."""


def twins_of(each: stack.Stack) -> dict[int, int]:
    """Of blocks on the meta device whose modules are the same: which one stands for which."""
    groups: dict[Any, list[int]] = {}
    for number, block in enumerate(each.blocks):
        if any(p.is_meta for p in block.parameters()):
            groups.setdefault(_signature(block), []).append(number)
    return {
        number: group[1] for group in groups.values() if len(group) > MANY for number in group[2:-1]
    }


def _signature(block: nn.Module) -> Any:
    """What a block's modules are: classes, shapes of parameters, and plain attributes."""
    plain = (bool, int, float, str, type(None))
    return tuple(
        (
            name,
            type(module),
            tuple(
                (k, v)
                for k, v in vars(module).items()
                if isinstance(v, plain) and k not in NUMBERED
            ),
            tuple((k, p.shape) for k, p in module.named_parameters(recurse=False)),
        )
        for name, module in block.named_modules()
    )


def _spare(each: StackTrace) -> Callable[[], None]:
    """Let twins give a result of the same shape without running. Returns how to undo it."""
    results: dict[int, Any] = {}
    handles = []
    spared = [each.stack.blocks[number] for number in each.twins]

    def keep(number: int) -> Callable[..., None]:
        def hook(_: nn.Module, args: tuple, result: Any) -> None:
            results.setdefault(number, result)

        return hook

    for number in set(each.twins.values()):
        handles.append(each.stack.blocks[number].register_forward_hook(keep(number)))
    for number, twin in each.twins.items():
        block = each.stack.blocks[number]

        def forward(*args: Any, twin: int = twin, **kwargs: Any) -> Any:
            return _fresh(results[twin])

        forward.forwards = None  # pyrefly: ignore[missing-attribute] (a copy of the block can do without it)
        block.forward = forward

    def undo() -> None:
        for handle in handles:
            handle.remove()
        for block in spared:
            vars(block).pop("forward", None)

    return undo


def _through_hooks(block: nn.Module) -> Callable[[], None]:
    """Let a model that calls `block.forward` itself pass the block's hooks. Returns how to undo it."""
    forward, own = block.forward, vars(block).get("forward")
    called: set[nn.Module] = set()

    def passed(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs) if called else block(*args, **kwargs)

    passed.forwards = forward  # pyrefly: ignore[missing-attribute] (a copy of the block can do without it)
    handles = [
        block.register_forward_pre_hook(lambda module, _: called.add(module)),
        block.register_forward_hook(lambda module, *_: called.discard(module), always_call=True),
    ]
    block.forward = passed

    def undo() -> None:
        for handle in handles:
            handle.remove()
        if own is None:
            del block.forward
        else:
            block.forward = own

    return undo


def _fresh(value: Any) -> Any:
    """New tensors of the same shapes."""
    if isinstance(value, Tensor):
        return torch.empty_like(value)
    if isinstance(value, dict):
        return type(value)({k: _fresh(v) for k, v in value.items()})
    return type(value)(_fresh(v) for v in value) if type(value) in (list, tuple) else value


@contextmanager
def _prepared(model: nn.Module, stacks: Iterable[stack.Stack]) -> Iterator[list[str]]:
    """Evaluation mode without gradients; on the meta device with modules that may fail. Yields the paths
    of those that did."""
    hidden: list[str] = []
    with (
        torch.random.fork_rng(devices=devices(model)),
        torch.no_grad(),
        no_shortcut(),
        evaluating(model),
    ):
        blocks = {block for each in stacks for block in each.blocks}
        whole = {
            n
            for n, module in model.named_modules()
            if module in blocks or blocks & {*module.modules()}
        }
        guarded = [
            _guard(module, name, hidden)
            for name, module in model.named_modules()
            if name not in whole and _may_hide(module)
        ]
        try:
            yield hidden
        finally:
            for undo in guarded:
                undo()


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; each module's own mode afterwards."""
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in training.items():
            module.training = mode


@contextmanager
def no_shortcut() -> Iterator[None]:
    """Let torch's encoder layers call their modules: in evaluation they may pass them by."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _may_hide(module: nn.Module) -> bool:
    """Whether a module on the meta device may fail without a word on the placement: no norm, and no plain
    matrix, whose failure says that the input is wrong."""
    own = [*module.parameters()]
    is_plain = not [*module.children()] and all(p.ndim <= 2 for p in own)
    return any(p.is_meta for p in own) and not is_plain


def devices(model: nn.Module) -> list[int]:
    """The GPUs that hold its parameters, by number."""
    return sorted({p.device.index or 0 for p in model.parameters() if p.is_cuda})


def _guard(module: nn.Module, name: str, hidden: list[str]) -> Callable[[], None]:
    """Let a module on the meta device fail: where its operations depend on values, its result is a product of
    its first input with a matrix, of the same shape. Returns how to undo it."""
    forward = module.forward

    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return forward(*args, **kwargs)
        except (RuntimeError, NotImplementedError, TypeError):
            first = next((t for _, t in stack.arguments(args, kwargs)), None)
            if first is None:
                raise
            if name not in hidden:
                hidden.append(name)
            size = (first.shape[-1], first.shape[-1])
            matrix = torch.empty(size, dtype=first.dtype, device=first.device)
            return torch.nn.functional.linear(first, matrix)

    guarded.forwards = forward  # pyrefly: ignore[missing-attribute] (so that a copy of the module can do without it)
    module.forward = guarded

    def undo() -> None:
        del module.forward

    return undo


def _plain(
    model: nn.Module,
    run: Callable[[], object],
    traces: list[StackTrace],
    known: dict[str, norms.ProbedNorm],
) -> str:
    """A forward pass that finds the stream of each stack and the norms among the modules, which it adds to
    `known`. Returns why it ended early, or empty."""
    calls: list[list[stack.Call]] = [[] for _ in traces]
    handles: list[Any] = []
    tried: dict[Any, norms.ProbedNorm | None] = {}
    names = {module: name for name, module in model.named_modules()}

    def maybe_norm(module: nn.Module, args: tuple, kwargs: dict, result: Any) -> None:
        norm = _told(module, args, kwargs, result, tried)
        inner = [child for child in module.modules() if names[child] in known]
        if (
            norm is not None
            and len(inner) < 2
            and (norm.key is not None or not [*module.children()])
        ):
            known.setdefault(names[module], norm)

    blocks = [(n, block) for n, each in enumerate(traces) for block in set(each.stack.blocks)]
    for number, block in blocks:
        hook = _calls(traces[number], calls[number])
        handles.append(block.register_forward_hook(hook, with_kwargs=True))
    for module in filter(_may_be_norm, model.modules()):
        handles.append(module.register_forward_hook(maybe_norm, with_kwargs=True))
    try:
        with _Answers():
            error = _attempt(run)
    finally:
        for handle in handles:
            handle.remove()
    for each in traces:
        _twin_norms(each, known)
    for each, made in zip(traces, calls, strict=True):
        each.stream = stack.find_stream(made, each.stack.blocks[0])
        each.call = made[0] if made else None
        if each.stream is None and each.stack.single and made:
            each.stream = _open_stream(made[0], model)
        if made and each.stream is not None:
            leaving = each.stream.leaving(made[0].result)
            each.shape = tuple(leaving.shape) if leaving is not None else ()
    return error


OPEN = ""
"""The argument of a stream that starts inside of a module, which is given tokens or pictures."""


def _open_stream(call: stack.Call, model: nn.Module) -> stack.Stream | None:
    """The stream of a module that makes it itself and gives something else."""
    for part, leaving in stack.results(call.result):
        widths = (m.embedding_dim for m in model.modules() if isinstance(m, nn.Embedding))
        return stack.Stream(OPEN, part, next(widths, leaving.shape[-1]), False)
    return None


def _follows(symbol: Symbol) -> bool:
    """Whether a symbol depends on a stream."""
    return any(isinstance(part, Stream) for part in sources(symbol))


def _without_head(symbol: Symbol) -> Symbol:
    """What a head, a pooling or other operations on one tensor have read."""
    while isinstance(inner := bare(symbol), Made) and len(inner.of) == 1:
        symbol = inner.of[0]
    return symbol


def _ends_inside(each: StackTrace, judged: Judged) -> None:
    """The norms at both ends of a module that is read as a whole, and how many blocks it has."""
    *before, last = judged.sublayers
    if before and last.norm_main and not any(sublayer.norm_main for sublayer in before):
        each.final_norm, last.norm_main = last.norm_main, None
    if len(before) > 1 and judged.enters and not before[0].norm_main:
        each.embed_norm, judged.enters = judged.enters, None
    roles = [branch.role for sublayer in judged.sublayers for branch in sublayer.branches]
    counts = {role: roles.count(role) for role in roles}
    each.layers = max(
        1, counts.get("attention", 0) or counts.get("mixer", 0) or len(judged.sublayers)
    )


def _calls(each: StackTrace, calls: list[stack.Call]) -> Callable[..., None]:
    """A hook that keeps the calls of a stack's blocks."""

    def hook(block: nn.Module, args: tuple, kwargs: dict, result: Any) -> None:
        each.runs += 1
        if not each.twins or each.stack.blocks.index(block) not in each.twins:
            calls.append(stack.Call(args, kwargs, result))  # what passes a twin is made up

    return hook


def _told(
    module: nn.Module,
    args: tuple,
    kwargs: dict,
    result: Any,
    tried: dict[Any, norms.ProbedNorm | None],
) -> norms.ProbedNorm | None:
    """The norm that a module is, by a call of it; tried once for modules that compute the same."""
    place, given = next(stack.arguments(args, kwargs), (0, None))
    made = norms.answer(result)
    if given is None or made is None or made.shape != given.shape:
        return None
    shape = tuple(made.shape)
    others = tuple(name for name, argument in kwargs.items() if isinstance(argument, Tensor))
    key = (_alike(module, shape), place, others)
    if key not in tried:
        call = _call(place, args, kwargs)
        tried[key] = norms.tell(module, _few_tokens(module, shape), call)
        if tried[key] is None and any(p.shape == shape[-p.ndim :] for p in _planes(module)):
            tried[key] = norms.tell(module, shape, call)  # its scale is as long as the text
    return tried[key]


def _planes(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.ndim >= 2]


LIBRARIES = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
"""Folders whose code is none of the visitor's."""


def line() -> str:
    """File and line of the visitor's code that is running: the innermost call outside of torch."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*LIBRARIES, "<frozen")):
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _twin_norms(each: StackTrace, known: dict[str, norms.ProbedNorm]) -> None:
    """The norms of blocks that did not run are those of the blocks that stand for them."""
    for number, twin in each.twins.items():
        start = each.stack.inside(twin)
        for name in [path for path in known if path.startswith(start)]:
            known[each.stack.inside(number) + name.removeprefix(start)] = known[name]


def _few_tokens(module: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with few tokens, and with all channels, last or second."""
    channels = stack.channel_axis(module, shape) % len(shape)
    heads = {p.shape[0] for p in module.parameters() if p.ndim > 1}
    few = 4 if len(shape) > 3 else 8
    few -= few == shape[channels]  # so that the two axes can be told apart
    return tuple(
        n if axis == channels or n in heads else min(n, few) for axis, n in enumerate(shape)
    )


def _call(place: int | str, args: tuple, kwargs: dict) -> Callable[[nn.Module, Tensor], object]:
    """A call like one that was seen: another tensor at that place, ones in place of other tensors."""

    def call(module: nn.Module, x: Tensor) -> object:
        given = {
            at: x
            if at == place
            else torch.ones(argument.shape, dtype=x.dtype)
            if isinstance(argument, Tensor)
            else argument
            for at, argument in (*enumerate(args), *kwargs.items())
        }
        names = {at: argument for at, argument in given.items() if isinstance(at, str)}
        return module(*(given[at] for at in range(len(args))), **names)

    return call


def _may_be_norm(module: nn.Module) -> bool:
    """Whether a module's parameters have the shapes of a norm's: vectors, with at most two matrices of a
    gate beside a vector of its own."""
    if isinstance(module, NOT_NORMS):
        return False
    own, children = [*module.parameters()], [*module.children()]
    if not children:
        return all(p.ndim <= 1 or p.numel() <= 1 << 16 for p in own)
    if all(p.ndim <= 1 for p in own):
        return bool(own)
    vector = any(p.ndim == 1 for p in module.parameters(recurse=False))
    gate = all(isinstance(child, nn.Linear) for child in children) and len(children) == 2
    return vector and gate


def _alike(module: nn.Module, shape: tuple[int, ...]) -> Any:
    """A key that modules share that compute the same."""
    plain = (bool, int, float, str, tuple, type(None))
    own = tuple(
        (k, v) for k, v in vars(module).items() if isinstance(v, plain) and k != "layer_idx"
    )
    shapes = tuple((n, p.shape, _mean(p)) for n, p in module.named_parameters())
    return type(module), shape, own, shapes


def _mean(p: Tensor) -> float | None:
    return None if p.is_meta else round(float(p.detach().double().mean()), 9)


QUESTIONS = {
    "__contains__", "item", "__bool__", "__int__", "__index__", "__float__", "is_nonzero", "equal",
    "allclose",
}  # fmt: skip
"""Operations that need the value of a tensor."""


class _Answers(TorchFunctionMode):
    """Questions for the value of a tensor on the meta device get an answer: true, or 1."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in QUESTIONS and isinstance(args[0], Tensor) and args[0].is_meta:
            return _answer(name, args[0].dtype)
        return func(*args, **(kwargs or {}))


def _answer(name: str, dtype: torch.dtype) -> bool | int | float:
    if name == "__contains__":
        return False  # such as: is there padding?
    if name in ("__bool__", "is_nonzero", "equal", "allclose") or dtype is torch.bool:
        return True
    return 1.0 if dtype.is_floating_point else 1


class _Follow(TorchFunctionMode):
    """Gives the result of every operation a symbol.

    outer       symbols of tensors outside of the blocks, by identity; in a block `scope` is another table
    references  keeps tensors and symbols alive, so that no identity is used twice
    labels      names of parameters, single numbers, and what was made of them alone, by identity
    parameters  names of the parameters alone
    ends        the symbol of what left each block, by the identity of its `BlockTrace`
    tokens      sizes that an axis along the tokens may have in the present block
    opens       whether the block makes its stream itself, which has not begun
    width       channels of the present block's stream
    """

    def __init__(
        self,
        model: nn.Module,
        traces: list[StackTrace],
        known: dict[str, norms.ProbedNorm],
        hidden: list[str],
    ) -> None:
        super().__init__()
        self.model, self.traces, self.known, self.hidden = model, traces, known, hidden
        self.names = {module: name for name, module in model.named_modules()}
        self.outer: dict[int, Symbol] = {}
        self.scope = self.outer
        self.references: list[Any] = []
        self.block: BlockTrace | None = None
        self.labels = {id(p): name for name, p in model.named_parameters()}
        self.labels |= {id(b): name for name, b in model.named_buffers() if b.numel() == 1}
        self.scales: dict[str, nn.Parameter] = {}
        self.ends: dict[int, Symbol] = {}
        self.results: list[Symbol] = []
        self.count = 0
        self.tokens: set[int] = set()
        self.opens = False
        self.width = 0
        self.ran: set[str] = set()
        self.used: set[str] = set()
        self.lines: dict[str, str] = {}
        self.parameters = {id(p): name for name, p in model.named_parameters()}

    # Hooks on modules: blocks open a scope, norms give their result its symbol.

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Hooks on all modules while it is open."""
        handles: list[Any] = [self.model.register_forward_pre_hook(self._begin, with_kwargs=True)]
        blocks = {block: each for each in self.traces for block in each.stack.blocks}
        for module in self.model.modules():
            each = blocks.get(module)
            if each is not None and each.stream is not None:
                enter, leave = self._enter(each, each.stream), self._leave(each, each.stream)
                handles.append(module.register_forward_pre_hook(enter, with_kwargs=True))
                handles.append(module.register_forward_hook(leave, with_kwargs=True, prepend=True))
            else:
                handles.append(module.register_forward_hook(self._module, with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _begin(self, model: nn.Module, args: tuple, kwargs: dict) -> None:
        """Pictures, sound and other inputs that are no tokens."""
        for _, tensor in stack.arguments(args, kwargs):
            self.outer[id(tensor)] = Made((), "input")

    def _enter(self, each: StackTrace, stream: stack.Stream) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple, kwargs: dict) -> None:
            self.ran.add(self.names[module])
            number = len(each.blocks)
            own = each.stack.blocks.index(module)
            trace = BlockTrace(number, own)
            entering = stream.entering(args, kwargs)
            if entering is not None:
                trace.before = self.scope.get(id(entering), Made(()))
                self.scope = {id(entering): Stream()}
                shape = entering.shape
                sizes = shape[1:-1][:1] if stream.axis == -1 else shape[2:]
                self.tokens = {*sizes, prod(sizes)} - {1}
            elif stream.argument == OPEN:
                self.scope, self.opens = {}, True
            else:
                trace.why = "the stream does not enter it as its other blocks"
                self.scope = {}
            each.blocks.append(trace)
            self.block, self.width = trace, stream.width

        return hook

    def _leave(self, each: StackTrace, stream: stack.Stream) -> Callable[..., None]:
        def hook(_: nn.Module, args: tuple, kwargs: dict, result: Any) -> None:
            trace = each.blocks[-1]
            trace.ended = True
            leaving = stream.leaving(result)
            if leaving is None:
                trace.why = trace.why or "the stream does not leave it as its other blocks"
            else:
                trace.result = self.scope.get(id(leaving), Made(()))
            for past in self.scope:
                self.outer.setdefault(past, Made((), "outside"))
            self.scope, self.block, self.opens = self.outer, None, False
            if leaving is not None:
                self.ends[id(trace)] = end = Made((), each.stack.block_path(trace.module))
                self.scope[id(leaving)] = end
                self.references.append(leaving)

        return hook

    def _module(self, module: nn.Module, args: tuple, kwargs: dict, result: Any) -> None:
        name = self.names[module]
        self.ran.add(name)
        if module is self.model:
            self.results = [
                s for t in stack.tensors(result) if (s := self.outer.get(id(t))) is not None
            ]
        given = next((t for _, t in stack.arguments(args, kwargs)), None)
        made = norms.answer(result)
        if name in self.known and name not in self.lines:
            self.lines[name] = line()
        if name in self.known and given is not None and made is not None:
            of = self._symbol(given)
            if of is not None:
                self._set(made, of if self.known[name].key == "none" else Normed(name, of))
        if self.block is not None and name in self.hidden and made is not None:
            of = self.scope.get(id(made))
            if of is not None and given is not None and self._was_multiplied(given):
                self._set(made, Made((of,), "hidden"))  # more than matrices was in it
        if self.block is not None:
            read = self.scope.get(id(given)) if given is not None else None
            for _, tensor in stack.results(result):
                if (symbol := self.scope.get(id(tensor))) is not None:
                    if read is not None and is_state(read) and not is_state(symbol):
                        self.block.reads.append((name, symbol))
                    self.block.made.setdefault(id(bare(symbol)), []).append(name)

    # Operations.

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given = [*stack.tensors((args, kwargs))]
        if getattr(func, "__name__", "") in QUESTIONS and given and given[0].is_meta:
            return _answer(func.__name__, given[0].dtype)
        self.used |= {self.parameters[id(t)] for t in given if id(t) in self.parameters}
        before = [self._symbol(t) for t in given]
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name == "__setitem__":
            self._assign(given, before)
            return result
        made = [*stack.tensors(result)]
        if made:
            self._note(name.strip("_"), args, kwargs, given, before, made)
        return result

    def _symbol(self, tensor: Tensor) -> Symbol | None:
        """The symbol of a tensor; one from outside of the block is made of nothing in it."""
        symbol = self.scope.get(id(tensor))
        if symbol is None and self.scope is not self.outer and id(tensor) in self.outer:
            symbol = self.scope[id(tensor)] = Made((), "outside")
        return symbol

    def _set(self, tensor: Tensor, symbol: Symbol) -> None:
        self.scope[id(tensor)] = symbol
        self.references.append(tensor)
        self.references.append(symbol)

    def _assign(self, given: list[Tensor], before: list[Symbol | None]) -> None:
        every = tuple(symbol for symbol in before if symbol is not None)
        if every and given:
            self._set(given[0], every[-1] if len(every) == 1 else Made(every))

    def _note(
        self,
        name: str,
        args: tuple,
        kwargs: dict,
        given: list[Tensor],
        before: list[Symbol | None],
        made: list[Tensor],
    ) -> None:
        """Give the results of an operation their symbols."""
        symbols: list[Symbol] = [symbol for symbol in before if symbol is not None]
        if (
            not symbols
            and (self.scope is self.outer or self.opens)
            and self._embeds(name, args, made)
        ):
            symbols = [Made((), "input")]
        looked_up = name in ("getitem", "index_select", "gather", "embedding") and before[:1] == [
            None
        ]
        if self.scope is not self.outer and looked_up and id(given[0]) in self.labels:
            symbols = []  # a matrix that a router chose: what it chose by is no value of it
        if name in LIKE and before[:1] == [None]:
            symbols = []  # `bias.expand_as(x)` has no value of x
        if not symbols:
            label = next((self.labels[id(t)] for t in given if id(t) in self.labels), None)
            for tensor in made if label else ():
                self.labels.setdefault(id(tensor), label or "")
                self.references.append(tensor)
            return
        is_first = multiplies(name) or name == "embedding"
        if self.opens and is_first and not any(map(_follows, symbols)):
            new_symbol: Symbol = Stream()  # the first matrix makes the stream of the input
            sizes = made[0].shape[1:-1][:1]
            self.tokens = {*sizes, prod(sizes)} - {1}
        else:
            width = self.width if self.block is not None else 0
            number = _statistic(name, args, given, symbols, made, width)
            new_symbol = number or self._operation(name, args, kwargs, given, before, symbols, made)
        for tensor in made:
            self._set(tensor, new_symbol)

    def _embeds(self, name: str, args: tuple, made: list[Tensor]) -> bool:
        """Whether an operation outside of the blocks looks tokens up in a matrix."""
        looked_up = name == "getitem" and isinstance(args[1], Tensor) and id(args[0]) in self.labels
        return made[0].is_floating_point() and (name == "embedding" or looked_up)

    def _operation(
        self,
        name: str,
        args: tuple,
        kwargs: dict,
        given: list[Tensor],
        before: list[Symbol | None],
        symbols: Sequence[Symbol],
        made: list[Tensor],
    ) -> Symbol:
        first = symbols[0]
        name = (
            name[1:]
            if name in ("iadd", "radd", "imul", "rmul", "isub", "rsub", "itruediv")
            else name
        )
        if name in SAME or (name in COPIES and len(symbols) == 1):
            return first
        if name in SHAPED:
            return Viewed(first)
        if self._mixes(name, args, kwargs, given, made):
            return Made(tuple(symbols), "tokens")
        if name in PARTS or name == "getitem":
            whole = sum(t.numel() for t in made) == given[0].numel() and len(made) == 1
            return (
                Viewed(first) if whole or isinstance(bare(first), Made) else Made((first,), "part")
            )
        if (
            name in NORM_CALLS
            and before[0] is not None
            and not self._is_other_length(name, args, kwargs)
        ):
            self.count += 1
            called = f"{name}({self.count})"
            self.lines[called] = line()
            return Normed(called, first)
        if multiplies(name) or name in ATTENTION:
            return self._product(name, given, before, symbols)
        if name == "softmax":
            return Made((first,), "softmax")
        if name in ("add", "sub") and len(args) >= 2:
            return self._sum(name, args, kwargs, symbols)
        if name in ("mul", "multiply", "div", "truediv", "divide") and len(args) >= 2:
            return self._scaled(name, args, symbols)
        if name in ("addcmul", "lerp") and len(args) >= 3:
            return self._fused(name, args, kwargs, symbols)
        return Made(tuple(symbols), "zeros" if name == "zeros_like" else "")

    def _mixes(
        self, name: str, args: tuple, kwargs: dict, given: list[Tensor], made: list[Tensor]
    ) -> bool:
        """Whether an operation inside of a block makes one token depend on others: a convolution, a pooling,
        a sum along the tokens, or a step of a loop that takes them one by one."""
        first = given[0]
        if self.block is None or not (made[0].is_floating_point() or made[0].is_complex()):
            return False
        if name.startswith("conv") and len(given) > 1:
            return any(n > 1 for n in given[1].shape[2:])
        if name in MIXES or "pool" in name or name.startswith("fft"):
            return True
        if name in ("sum", "mean"):
            along = args[1] if len(args) > 1 else kwargs.get("dim")
        elif name == "getitem" and _is_made(self.scope.get(id(first))):
            along = _picked(args[1])
        else:
            return False
        axes = [along] if isinstance(along, int) else along or ()
        return any(first.shape[axis] in self.tokens for axis in axes)

    def _is_other_length(self, name: str, args: tuple, kwargs: dict) -> bool:
        """Whether a call of `normalize` divides by another length than the L2 norm of channels, as Sinkhorn's
        does."""
        power, axis = (
            args[at] if len(args) > at else kwargs.get(key, usual)
            for at, key, usual in ((1, "p", 2.0), (2, "dim", 1))
        )
        return name == "normalize" and (power != 2 or args[0].shape[axis] in self.tokens)

    def _was_multiplied(self, tensor: Tensor) -> bool:
        """Whether two tensors that were computed from this one have been multiplied."""
        symbol, products = self.scope.get(id(tensor)), self.block.products if self.block else []
        return any(part is symbol for product in products for part in sources(product.left))

    def _product(
        self, name: str, given: list[Tensor], before: list[Symbol | None], symbols: Sequence[Symbol]
    ) -> Symbol:
        """A product with a matrix that is learned, or of two tensors that depend on the stream."""
        every = [(t, s) for t, s in zip(given, before, strict=True) if s is not None]
        if name == "multi_head_attention_forward":
            return Made((Made(tuple(symbols), "attention"),), "softmax")
        if len({id(t) for t, _ in every}) < 2:
            made = Made(tuple(symbols), "linear")
            weight = next((self.parameters[id(t)] for t in given if id(t) in self.parameters), None)
            if weight is None:  # a view of a matrix, such as its transpose
                weight = next((self.labels[id(t)] for t in given if id(t) in self.labels), None)
            if weight is not None and self.block is not None:
                self.block.weights[id(made)] = weight
            return made
        (a, left), (b, right) = every[:2]
        if 1 in a.shape[-2:] or 1 in b.shape[-2:]:  # a weighted sum, as of the outputs of experts
            return Made(tuple(symbols), "linear")
        if self.block is not None:
            shapes = (tuple(a.shape), tuple(b.shape))
            self.block.products.append(Product(left, right, shapes))
        made = Made(tuple(symbols), "attention")
        return Made((made,), "softmax") if name in ATTENTION else made

    def _sum(self, name: str, args: tuple, kwargs: dict, symbols: Sequence[Symbol]) -> Symbol:
        left, right = (self._operand(args[0]), self._operand(args[1]))
        alpha = kwargs.get("alpha", 1)
        alpha = -alpha if name == "sub" and isinstance(alpha, int | float) else alpha
        if left is None or right is None:
            other = args[1] if right is None else args[0]
            shifted = symbols[0]
            if (isinstance(other, int | float) and other == 0) or _by_hand(shifted):
                return shifted
            if self.opens and isinstance(bare(shifted), Stream):
                return shifted  # positions
            return Sum(shifted, Made((), "shift")) if is_state(shifted) else Made((shifted,))
        if self.opens and isinstance(bare(left), Stream) and isinstance(bare(right), Stream):
            return left  # tokens and positions
        if alpha == -1 and isinstance(bare(right), Normed) and not is_state(left):
            return Made((left, right))  # inside of a branch, as pool(N(x)) - N(x)
        right = right if alpha == 1 else Scaled(right, f"{alpha:.6g}", True)
        if _is_own_mean(centred := Sum(left, right)):
            return centred
        if not (is_state(left) or is_state(right)) and _attends(left) == _attends(right):
            return Made((left, right))  # two parts of one branch, such as routed and shared experts
        return Sum(left, right)

    def _operand(self, value: Any) -> Symbol | None:
        return self._symbol(value) if isinstance(value, Tensor) else None

    def _scaled(self, name: str, args: tuple, symbols: Sequence[Symbol]) -> Symbol:
        left, right = self._operand(args[0]), self._operand(args[1])
        if left is not None and right is not None:
            pairs = [(args[0], left, right), (args[1], right, left)][: 1 if "div" in name else 2]
            written_out = (self._normed(*pair) for pair in pairs)
            made = Made((left, right), "own" if _of_itself(left, right) else "")
            return next((norm for norm in written_out if norm is not None), made)
        if left is None and "div" in name:
            return Made(tuple(symbols))
        factor = args[1] if left is not None else args[0]
        return self._times(symbols[0], factor, "div" in name)

    def _normed(self, tensor: Tensor, symbol: Symbol, other: Symbol) -> Symbol | None:
        """A norm that is written out: a tensor times or over the root of a number of its own channels; None
        if it is not one."""
        number, of = bare(other), bare(symbol)
        if isinstance(of, Scaled) and not of.number:
            of = bare(of.of)
        if not isinstance(number, Made) or number.by not in (ROOT, LENGTH):
            return None
        if self.block is None or tensor.shape[-1] != self.width:
            return None
        kind = "rms_norm" if number.by == ROOT else "normalize"
        if isinstance(of, Sum) and _is_own_mean(of):
            kind, of = "layer_norm", bare(of.first)
        if all(part is not of for part in sources(number)):
            return None
        self.count += 1
        called = f"{kind} by hand({self.count})"
        self.lines[called] = line()
        return Normed(called, of)

    def _times(self, symbol: Symbol, factor: Any, divides: bool) -> Symbol:
        """A tensor times (or over) a number, a parameter, or a mask."""
        if _by_hand(symbol) and isinstance(factor, Tensor) and factor.numel() > 1:
            return symbol  # its gain
        if isinstance(factor, Tensor):
            label = self.labels.get(id(factor), "")
            if factor.numel() == 1 and not factor.is_meta and not label:
                factor = factor.item()
            else:
                if not label:
                    return symbol  # a mask, or positions
                parameter = dict(self.model.named_parameters()).get(label)
                if parameter is not None:
                    self.scales[label] = parameter
                return Scaled(symbol, f"1/{label}" if divides else label, factor.numel() == 1)
        if not isinstance(factor, int | float):
            return Made((symbol,))
        factor = 1 / factor if divides and factor else factor
        return symbol if factor == 1 else Scaled(symbol, f"{factor:.6g}", True)

    def _fused(self, name: str, args: tuple, kwargs: dict, symbols: Sequence[Symbol]) -> Symbol:
        """x + v a b, or x + w (y - x)."""
        x, a, b = args[:3]
        start, first, second = self._operand(x), self._operand(a), self._operand(b)
        if name == "addcmul":
            if start is None or (first is None) == (second is None):
                return Made(tuple(symbols))
            moved, factor = (first, b) if first is not None else (second, a)
            assert moved is not None
            value = self._times(moved, factor, False)
            return Sum(start, self._times(value, kwargs.get("value", 1), False))
        if start is None or first is None or second is not None:
            return Made(tuple(symbols))
        moved = Sum(first, Scaled(start, "-1", True))
        return Sum(start, self._times(moved, b, False))

    # After the pass.

    def judge(self, each: StackTrace) -> None:
        """Read each block's result, and the norms around the stack."""
        if each.blocks and not each.blocks[-1].ended:
            each.blocks.pop()  # an error broke it off, which `Trace.error` says
        for trace in each.blocks:
            start = f"{each.stack.path}." if each.stack.path else ""
            trace.hidden = [path for path in self.hidden if path.startswith(start)]
            if trace.number in each.twins:
                twin = each.blocks[each.twins[trace.number]]
                trace.result, trace.products, trace.made = twin.result, twin.products, twin.made
                trace.weights = twin.weights
            if not trace.why:
                trace.why = self._why(each, trace)
        if not each.blocks:
            return
        each.layers = len(each.blocks)
        each.embed_norm = _norm_in(each.blocks[0].before)
        self._between(each)
        last = self.ends.get(id(each.blocks[-1]))
        final = None
        if last is not None:
            every = (s for s in self.outer.values() if isinstance(s, Normed) and _reads(s.of, last))
            # The module, not the function that it calls, which is seen before it.
            final = min(every, key=lambda s: s.name not in self.known, default=None)
        if final is not None:
            each.final_norm = final.name
            used = any(part is final for result in self.results for part in sources(result))
            each.ignored = bool(self.results) and not used
        if each.stack.single and each.blocks[0].judged is not None:
            _ends_inside(each, each.blocks[0].judged)

    def goes_on(self, each: StackTrace) -> Literal["", "blocks", "norm"]:
        """What reads the end of a stack, further on than a final norm: see `StackTrace`."""
        last = self.ends.get(id(each.blocks[-1])) if each.blocks else None
        if last is None:
            return ""
        starts = [
            stack_trace.blocks[0].before
            for stack_trace in self.traces
            if stack_trace is not each and stack_trace.blocks
        ]
        if any(part is last for start in starts if start is not None for part in sources(start)):
            return "blocks"
        after = [symbol for symbol in self.outer.values() if isinstance(symbol, Normed)]
        return "norm" if any(part is last for norm in after for part in sources(norm)) else ""

    def _why(self, each: StackTrace, trace: BlockTrace) -> str:
        """Judge a block; why it is undecided, or empty."""
        if each.stream is not None and each.stream.rivals:
            count = each.stream.rivals + 1
            return f"{count} tensors pass from block to block, not one stream"
        try:
            if each.stream is not None and each.stream.argument == OPEN:
                trace.result = _without_head(trace.result)
            trace.judged = judge(trace.result)
            name_roles(trace.judged)
            branches = (b for sublayer in trace.judged.sublayers for b in sublayer.branches)
            if any("own" in b.parts and b.norm_in is None for b in branches):
                trace.judged = None
                return "a branch reads the stream times numbers computed from it, and no norm is known in it"
        except Undecided as error:
            return str(error)
        except RecursionError:
            return "its forward pass is too deep to follow"
        return ""

    def _between(self, each: StackTrace) -> None:
        """What happens between two blocks: nothing, a norm, or a mixture of several blocks' results."""
        ends = {id(self.ends[id(block)]) for block in each.blocks if id(block) in self.ends}
        for before, after in pairwise(each.blocks):
            end = self.ends.get(id(before))
            entered = bare(after.before) if after.before is not None else None
            if isinstance(entered, Normed) and end is not None and bare(entered.of) is end:
                each.between = entered.name
            elif entered is not None and len({id(part) for part in sources(entered)} & ends) > 1:
                each.mixes = "what enters a block is a mixture of what left several blocks"


def _statistic(
    name: str,
    args: tuple,
    given: list[Tensor],
    symbols: Sequence[Symbol],
    made: list[Tensor],
    width: int,
) -> Symbol | None:
    """The symbol of one number for the channels of each token, `width` many; None if it is none."""
    first = bare(symbols[0])
    if len({id(bare(symbol)) for symbol in symbols}) > 1:
        return None
    shape, now = given[0].shape, made[0].shape
    if isinstance(first, Made) and first.by in (STATISTIC, ROOT, LENGTH) and name in POINTWISE:
        power = args[1] if name == "pow" and len(args) > 1 else None
        halves = isinstance(power, float) and abs(power) == 0.5
        is_root = first.by == STATISTIC and (halves or name in ("sqrt", "rsqrt"))
        return Made((first,), ROOT if is_root else first.by) if now == shape else None
    if name in REDUCES and shape and shape[-1] == width and now in ((*shape[:-1], 1), shape[:-1]):
        by = LENGTH if "norm" in name else ROOT if name == "std" else STATISTIC
        return Made((first,), by)
    return None


def _of_itself(left: Symbol, right: Symbol) -> bool:
    """Whether a stream is multiplied by what was computed from it without a matrix."""
    stream, other = (left, right) if is_state(left) else (right, left)
    mixed = any(isinstance(part, Made) and part.by in MATRICES for part in sources(other))
    return is_state(stream) and isinstance(bare(other), Made) and not mixed and _follows(other)


def _is_own_mean(of: Sum) -> bool:
    """Whether a sum is a tensor without the mean of its channels."""
    mean = bare(of.second)
    mean = bare(mean.of) if isinstance(mean, Scaled) and mean.by == "-1" else mean
    return isinstance(mean, Made) and mean.by == STATISTIC and bare(of.first) in mean.of


def _by_hand(symbol: Symbol) -> bool:
    return isinstance(symbol, Normed) and "by hand(" in symbol.name


def is_state(symbol: Symbol) -> bool:
    """Whether a symbol has the stream on a skip path: the stream, its norm, or a sum with it."""
    known = vars(symbol).get("state")
    if known is None:
        known = _is_state(symbol)
        vars(symbol)["state"] = known  # a symbol never changes
    return known


def _is_state(symbol: Symbol) -> bool:
    match symbol:
        case Stream():
            return True
        case Normed(of=of) | Scaled(of=of) | Viewed(of=of):
            return is_state(of)
        case Sum(first, second):
            return is_state(first) or is_state(second)
    return False


def _attends(symbol: Symbol) -> bool:
    """Whether a part of a branch is attention."""
    parts = {part.by for part in sources(symbol, is_state) if isinstance(part, Made)}
    return role_of(parts) == "attention"


ROLES = {"attention": ("A", "attention"), "mixer": ("M", "mixer"), "mlp": ("F", "FFN")}
"""Letter and word of what a branch is, in the order in which a formula has them."""
OTHER = ("B", "branch")


def role_of(parts: set[str]) -> str:
    """What a branch is, by the operations in it; empty where they do not tell.

    attention  two tensors that depend on the stream are multiplied, and a softmax or no more than that
               mixes the tokens
    mixer      else, tokens are mixed: a convolution, a recurrence, a state space
    mlp        a feed-forward network: matrices, on each token by itself
    """
    if "attention" in parts and ("softmax" in parts or "tokens" not in parts):
        return "attention"
    if "tokens" in parts:
        return "mixer"
    return "mlp" if "linear" in parts and not parts & {"outside", "hidden"} else ""


def name_roles(judged: Judged) -> None:
    """Name each branch by what it computes."""
    for branch in (branch for sublayer in judged.sublayers for branch in sublayer.branches):
        if branch.root is not None and not any(map(is_state, sources(branch.root, _is_zeros))):
            branch.parts.add("hidden")  # zeros in the place of what is not installed here
        branch.role = role_of(branch.parts)


def _picked(index: Any) -> list[int]:
    """The axes of which an index takes one place."""
    every = index if isinstance(index, tuple) else (index,)
    if any(entry is None for entry in every):
        return []
    rest = next((at for at, entry in enumerate(every) if entry is Ellipsis), len(every))
    return [
        at if at < rest else at - len(every) for at, entry in enumerate(every) if type(entry) is int
    ]


def _is_made(symbol: Symbol | None) -> bool:
    return symbol is not None and isinstance(bare(symbol), Made)


def _is_zeros(symbol: Symbol) -> bool:
    return isinstance(symbol, Made) and symbol.by == "zeros"


def _norm_in(symbol: Symbol | None) -> str | None:
    """The name of a norm that a symbol was computed from; None if there is none."""
    match symbol:
        case Normed(name):
            return name
        case Made(of=parts):
            return next((name for part in parts if (name := _norm_in(part))), None)
        case Sum(first, second):
            return _norm_in(first) or _norm_in(second)
        case Scaled(of=of) | Viewed(of=of):
            return _norm_in(of)
    return None


def _reads(symbol: Symbol, end: Symbol) -> bool:
    """Whether a norm's input is what left the last block, up to scale, shape, place and other terms."""
    symbol = bare(symbol)
    if symbol is end:
        return True
    match symbol:
        case Scaled(of=of):
            return _reads(of, end)
        case Sum(first, second):
            return _reads(first, end) or _reads(second, end)
        case Made(of=(part,), by="part"):
            return _reads(part, end)
    return False
