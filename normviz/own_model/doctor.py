"""The known bugs of norms, looked for in a model.

A check is a function over the traced model that gives findings: what it is, where, what was measured on this
model, and how to mend it. CHECKS lists them all. Nothing is said that the trace or a trial does not show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..catalog import SCHEMES
from ..lessons.choose.facts import cells, measured
from . import norms, placement, scheme_of, stack
from .judge import Branch, Sublayer
from .report import Finding, StackFound
from .symbols import Made, Normed, Stream, Symbol, Viewed, bare, read_by, same, sources

POST = ("post", "post_init", "post_scaled")
NEAR = 0.15
"""Relative difference up to which a matrix starts at 1 / sqrt(2L) of the others."""


@dataclass(frozen=True)
class Subject:
    """A traced model: its stacks that ran with what was found of them, and the groups of its optimizers, if
    they are known."""

    model: nn.Module
    traced: placement.Trace
    stacks: tuple[tuple[placement.StackTrace, StackFound], ...]
    groups: tuple[dict[str, Any], ...] = ()

    @cached_property
    def parameters(self) -> dict[str, nn.Parameter]:
        """All parameters by name."""
        return dict(self.model.named_parameters())

    @cached_property
    def modules(self) -> dict[str, nn.Module]:
        """All modules by path; one that stands at several places has the first path."""
        return dict(self.model.named_modules())

    @cached_property
    def queries(self) -> set[str]:
        """The norms of queries and keys."""
        blocks = [block for each, _ in self.stacks for block in each.blocks]
        return set().union(*(scheme_of.qk_names(block) for block in blocks))

    @cached_property
    def dtype(self) -> torch.dtype:
        """The dtype that a configuration of Hugging Face names, else that of the parameters."""
        named = getattr(getattr(self.model, "config", None), "dtype", None)
        return named if isinstance(named, torch.dtype) else norms.dtype_of(self.model)

    def dtype_of(self, module: nn.Module) -> torch.dtype:
        """The dtype of a module's parameters, or the model's where it has none."""
        return norms.dtype_of(module) if [*module.parameters()] else self.dtype

    def at(self, name: str) -> str:
        """A norm's path, and the line that calls it where that is known."""
        line = self.traced.lines.get(name, "")
        return f"{name} ({line})" if line else name

    def coded(self, name: str) -> str:
        """A norm's path, and the line of its class where it gives its result, or the line that calls it."""
        module = self.modules.get(name)
        line = last_line(module, self.traced.norms[name].width) if module is not None else ""
        return f"{name} ({line})" if line else self.at(name)


def findings(
    model: nn.Module,
    traced: placement.Trace,
    stacks: Iterable[StackFound],
    optimizer: Any = None,
) -> tuple[Finding, ...]:
    """All findings; of those that are alike in several blocks the first one, with their number.

    `optimizer` is one, or a list of them.
    """
    ran = [each for each in traced.stacks if each.runs]
    pairs = tuple((e, found) for e, found in zip(ran, stacks, strict=True) if e.blocks)
    every = optimizer if isinstance(optimizer, list | tuple) else [optimizer]
    groups = tuple(group for each in every for group in getattr(each, "param_groups", ()))
    subject = Subject(model, traced, pairs, groups)
    alike: dict[tuple[str, str], list[Finding]] = {}
    with torch.random.fork_rng(devices=placement.devices(model)):
        for check in CHECKS:
            for found in check(subject):
                alike.setdefault((found.name, re.sub(r"\d+", "*", found.where)), []).append(found)
    return tuple(_counted(group) for group in alike.values())


def _counted(group: list[Finding]) -> Finding:
    first, more = group[0], len({found.where for found in group}) - 1  # a looped block is one place
    places = f"{first.measured} (and at {more} more place{'s' * (more > 1)})"
    return replace(first, measured=places) if more else first


class _Lines(TorchFunctionMode):
    """Keeps the line of the operation that ran last."""

    last = ""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.last = placement.line() or self.last
        return result


def last_line(module: nn.Module, width: int) -> str:
    """File and line of a module's own code that computes its result; empty for a module of torch."""
    with _Lines() as lines, torch.no_grad():
        try:
            norms.bare_copy(module)(torch.ones(1, 2, width, dtype=norms.dtype_of(module)))
        except Exception:  # timm's norms raise AssertionError, einops' KeyError
            return ""
    return lines.last


# Norms that are not called, or called for several places.


def _unused(subject: Subject) -> Iterator[Finding]:
    """A norm whose parent ran, that was not called, and whose parameters nothing read."""
    traced = subject.traced
    spared = tuple(each.stack.inside(number) for each, _ in subject.stacks for number in each.twins)
    for path, module in subject.modules.items():
        parent = path.rpartition(".")[0]
        if path in traced.ran or not path or parent not in traced.ran:
            continue
        own = [name for name, _ in module.named_parameters(prefix=path)]
        if path.startswith(spared) or not own or traced.used & {*own}:
            continue
        if not _is_norm(module) or _rests(subject, parent) or _is_named(subject, parent, path):
            continue
        yield Finding(
            "norm unused",
            path,
            f"a norm that no forward pass calls{_changes(subject, module)}",
            "call it where it was meant, or delete it",
        )


def _dropped(subject: Subject) -> Iterator[Finding]:
    """A norm that is called, and whose result nothing reads."""
    for each, _ in subject.stacks:
        if each.ignored and each.final_norm in subject.modules:
            yield from _no_reader(subject, each.final_norm)
        read = set().union(*(block.norm_names for block in each.blocks))
        starts = tuple({each.stack.inside(block.module) for block in each.blocks} - {""})
        for name in subject.traced.lines:
            if name.startswith(starts) and name not in read and name in subject.modules:
                yield from _no_reader(subject, name)


def _no_reader(subject: Subject, name: str) -> Iterator[Finding]:
    """That nothing reads a norm's result, if its parameters change nothing either."""
    module = subject.modules[name]
    said = _changes(subject, module) if [*module.parameters()] else ""
    if said.endswith("by 0"):
        yield Finding(
            "norm unused",
            subject.at(name),
            f"a norm whose result nothing reads{said}",
            "use what it returns, x = norm(x), or delete it",
        )


def _is_named(subject: Subject, parent: str, path: str) -> bool:
    """Whether code of the parent names a norm, which another input may call."""
    kind, name = type(subject.modules[parent]), path.rpartition(".")[2]
    methods = [getattr(kind, key, None) for key in dir(kind) if not hasattr(nn.Module, key)]
    codes = [getattr(method, "__code__", None) for method in (*methods, kind.forward)]
    return any(name in code.co_names for code in codes if code is not None)


def _rests(subject: Subject, parent: str) -> bool:
    """Whether a part with matrices beside a norm did not run, such as attention to an encoder that is not
    there."""
    children = (
        subject.modules[parent].named_children() if parent else subject.model.named_children()
    )
    start = f"{parent}." if parent else ""
    return any(
        start + name not in subject.traced.ran and stack.matrices(child)
        for name, child in children
        if not isinstance(child, nn.ModuleList | nn.ModuleDict)
    )


def _is_norm(module: nn.Module) -> bool:
    first = next(module.parameters())
    if [*module.children()] or first.ndim != 1:
        return False
    told = norms.tell(module, (4, 8, first.numel()))
    return told is not None and told.key != "none"


def _changes(subject: Subject, module: nn.Module) -> str:
    """How much the model's output changes when the parameters of a norm do, in words."""
    before = _output(subject)
    if before is None:
        return ""
    kept = [p.detach().clone() for p in module.parameters()]
    with torch.no_grad():
        try:
            for p in module.parameters():
                p.add_(1.0)
            after = _output(subject)
        finally:
            for p, value in zip(module.parameters(), kept, strict=True):
                p.copy_(value)
    if after is None:
        return ""
    return f": adding 1 to its parameters changes the output by {float((after - before).abs().max()):.3g}"


def _output(subject: Subject) -> Tensor | None:
    """The model's first output on the small input, in evaluation mode; None where it has no values."""
    if any(p.is_meta for p in subject.parameters.values()):
        return None
    devices = placement.devices(subject.model)
    try:
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=devices),
            placement.evaluating(subject.model),
        ):
            torch.manual_seed(0)
            return next((t for _, t in stack.results(subject.traced.run())), None)
    except Exception:  # whatever a stranger's code raises after its blocks
        return None


def _shared(subject: Subject) -> Iterator[Finding]:
    """One norm, or one scale, in several blocks that have matrices of their own."""
    for each, _ in subject.stacks:
        blocks = list(dict.fromkeys(each.stack.blocks))
        places: dict[int, list[str]] = {}
        for number, block in enumerate(blocks):
            for name, p in block.named_parameters():
                if p.ndim == 1:
                    places.setdefault(id(p), []).append(each.stack.inside(number) + name)
        scales = {f"{path}.{norm.scale}" for path, norm in subject.traced.norms.items()}
        for group in places.values():
            if len(group) < 2 or not scales & {*group} or _is_shared_whole(blocks):
                continue
            of = f"all {len(blocks)}" if len(group) == len(blocks) else f"{len(group)}"
            yield Finding(
                "norm shared",
                group[0].rpartition(".")[0],
                f"one norm for {of} blocks: {group[1]} is the same parameter",
                "make one norm for each block, inside of the loop that makes the blocks",
            )


def _is_shared_whole(blocks: list[nn.Module]) -> bool:
    """Whether blocks share matrices too, as by design."""
    counts: dict[int, int] = {}
    for block in blocks:
        for p in block.parameters():
            if p.ndim >= 2:
                counts[id(p)] = counts.get(id(p), 0) + 1
    return any(count > 1 for count in counts.values())


def _twice(subject: Subject) -> Iterator[Finding]:
    """A norm at two places of a block whose branches have matrices of their own."""
    for each, _ in subject.stacks:
        for block in each.blocks:
            slots = [*_slots(block)]
            names = dict.fromkeys(name for name, *_ in slots)
            for name in names:
                held = [of for other, _, of in slots if other == name]
                distinct = [s for n, s in enumerate(held) if not any(same(s, t) for t in held[:n])]
                if len(distinct) < 2 or _loops(block) or name not in subject.modules:
                    continue
                home = name.rpartition(".")[0]
                never = [
                    path.rpartition(".")[2] for path in subject.modules
                    if path.rpartition(".")[0] == home and path not in subject.traced.ran
                    and type(subject.modules[path]) is type(subject.modules[name])
                ]  # fmt: skip
                and_never = f" and {', '.join(never)} never" if never else ""
                short = name.removeprefix(each.stack.inside(block.module))
                times = {2: "twice"}.get(len(distinct), f"{len(distinct)} times")
                yield Finding(
                    "norm called twice",
                    subject.at(name),
                    f"{short} is called {times} a block{and_never}: one scale serves {len(distinct)} places",
                    "give each place a norm of its own",
                )


def _slots(block: placement.BlockTrace) -> Iterator[tuple[str, str, Symbol]]:
    """The norms on the stream and after the branches of a block: name, slot, and what each reads."""
    queries = scheme_of.qk_names(block)
    for symbol in sources(block.result):
        if isinstance(symbol, Normed) and symbol.name not in queries:
            slot = "" if block.judged is None else _slot(block.judged.sublayers, symbol.name)
            yield (
                symbol.name,
                slot or ("enters" if isinstance(symbol.of, Stream) else ""),
                symbol.of,
            )


def _slot(sublayers: Iterable[Sublayer], name: str) -> str:
    for sublayer in sublayers:
        if sublayer.norm_main == name:
            return "norm_main"
        for branch in sublayer.branches:
            if branch.norm_out == name:
                return "norm_out"
            if branch.norm_in == name:
                return "norm_in"
    return ""


def _loops(block: placement.BlockTrace) -> bool:
    """Whether a matrix of the block serves two places too, as in a loop inside of it."""
    names = [*block.weights.values()]
    return len({*names}) < len(names)


# The skip path.


def _overwritten(subject: Subject) -> Iterator[Finding]:
    """A skip path that starts after the norm, where no published placement has it; a norm that writes into
    what it reads."""
    for each, record in subject.stacks:
        for block, module in zip(each.blocks, each.stack.blocks, strict=False):
            for name, kind in _forks(block):
                published = type(module).__module__.startswith("transformers.models.")
                on_purpose = "fork" in name.rpartition(".")[2]  # as our exported code calls it
                if record.placement == "skip_norm" and (published or on_purpose):
                    continue
                yield Finding(
                    "stream overwritten",
                    subject.at(name),
                    f"the skip path starts after the norm, N(x) + {kind}(N(x)): was x + f(norm(x)) meant? "
                    f"{_follows_size(each, block)}",
                    "keep the stream under its own name: x = x + f(norm(x))",
                )
    for name, norm in subject.traced.norms.items():
        module = subject.modules.get(name)
        if module is not None and norm.key is not None and _writes(module, norm.width):
            yield Finding(
                "stream overwritten",
                subject.coded(name),
                "it writes its result into the tensor that it reads: the skip path gets that result too",
                "compute it without in-place operations (x - m, not x.sub_(m))",
            )


def _forks(block: placement.BlockTrace) -> Iterator[tuple[str, str]]:
    """Norms that both a branch and its skip path read, with the branch's letter."""
    if block.judged is None:
        return
    sublayers = block.judged.sublayers
    for number, sublayer in enumerate(sublayers):
        above = sublayers[number - 1] if number else None
        before = above.norm_main if above else block.judged.enters
        if before is None or any(branch.norm_in for branch in sublayer.branches):
            continue
        # After a branch with a norm before it, or at the start of a block, it is no Post-LN.
        if block.judged.enters or (above and all(branch.norm_in for branch in above.branches)):
            if sublayer.norm_main is not None and not block.judged.enters:
                continue
            letters = [placement.ROLES.get(b.role, placement.OTHER)[0] for b in sublayer.branches]
            yield before, letters[0]


def _follows_size(each: placement.StackTrace, block: placement.BlockTrace) -> str:
    """How far what leaves a block follows a stream of twice the size, in words."""
    one, two = (_block_output(each, block.number, lambda x, s=s: s * x) for s in (1.0, 2.0))
    if one is None or two is None:
        return ""
    ratio = float(two.float().square().mean().sqrt() / one.float().square().mean().sqrt())
    return f"(a stream twice as large leaves the block {ratio:.2f} times as large)"


def _block_output(
    each: placement.StackTrace,
    number: int,
    change: Callable[[Tensor], Tensor],
    prepare: Callable[[nn.Module], object] = lambda block: None,
) -> Tensor | None:
    """What a copy of a block gives for a changed random stream; None where it can't be tried. Blocks that ran
    several times are counted as often."""
    blocks, call, where = each.stack.blocks, each.call, each.stream
    block = blocks[number % len(blocks)]
    if call is None or where is None or any(p.is_meta for p in block.parameters()):
        return None
    seen = where.entering(call.args, call.kwargs)
    if seen is None:
        return None
    x = torch.randn(seen.shape, generator=torch.Generator().manual_seed(0)).to(seen.dtype)
    x = change(x)
    args = tuple(x if place == where.argument else value for place, value in enumerate(call.args))
    kwargs = {k: x if k == where.argument else value for k, value in call.kwargs.items()}
    try:
        with torch.no_grad():
            copy = norms.bare_copy(block).eval()
            prepare(copy)
            return where.leaving(copy(*args, **kwargs))
    except Exception:  # whatever a stranger's code raises outside of its model
        return None


def _writes(module: nn.Module, width: int) -> bool:
    """Whether a norm changes its input."""
    x = torch.randn(1, 4, width).to(norms.dtype_of(module))
    given = x.clone()
    try:
        with torch.no_grad():
            norms.bare_copy(module)(given)
    except Exception:  # timm's norms raise AssertionError, einops' KeyError
        return False
    return not torch.equal(given, x)


# What a norm computes.


def _size(subject: Subject) -> Iterator[Finding]:
    """Norms whose output has another size than 1, and what has a wrong power of the input's size."""
    sizes: dict[type, set[float]] = {}
    told = {
        name: norm for name, norm in subject.traced.norms.items()
        if name not in subject.queries and norm.over == "token" and name in subject.modules
    }  # fmt: skip
    for name, norm in told.items():
        sizes.setdefault(type(subject.modules[name]), set()).add(round(norm.size, 3))
    for name, norm in told.items():
        if norm.power:
            root = {-1.0: ": its root is forgotten", 2.0: ": it multiplies by the size"}
            yield Finding(
                "no norm",
                subject.coded(name),
                f"{norm.label}{root.get(norm.power, '')}",
                "divide by the root: x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)",
            )
        elif len(sizes[type(subject.modules[name])]) == 1 and (rms := _rms(norm)) is not None:
            yield Finding(
                "norm of another size",
                subject.coded(name),
                f"{norm.label} whose output has RMS {rms:.3g}, not 1",
                f"multiply it by {1 / norm.size:.4g}, so that the root of the mean square is 1"
                if norm.gain != "number"
                else f"let its number start at the root of the width, {norm.width**0.5:.4g}",
            )


def _rms(norm: norms.ProbedNorm) -> float | None:
    """The RMS of a norm's output, if it is far from 1 by a constant of the code."""
    start = {"none": 1.0, "unknown": 1.0}.get(norm.gain, norm.start)
    if norm.gain.startswith("1 + "):
        start = 1 + (norm.start or 0.0)
    rms = abs(norm.size * (1.0 if start is None else start))
    if norm.gain == "unknown" or norm.key is None or (norm.key == "l2" and norm.gain == "none"):
        return None
    return rms if abs(norm.size - 1) > 0.1 and not 0.5 < rms < 2 else None


def _positions(subject: Subject) -> Iterator[Finding]:
    """Norms through which a block that is causal without them sees later positions."""
    for each, _ in subject.stacks:
        for block in each.blocks[:1]:
            path = each.stack.inside(0)
            over = {
                name: norm.over for name, norm in subject.traced.norms.items()
                if name.startswith(path) and norm.over in ("positions", "batch")
            }  # fmt: skip
            turned = [
                name for name, norm in subject.traced.norms.items()
                if name.startswith(path) and norm.over == "token" and norm.width == _tokens_of(each)
            ]  # fmt: skip
            over |= dict.fromkeys(turned, "positions")
            called = [name for name, *_ in _slots(block) if "norm(" in name]
            if not over and not called:
                continue
            inner = [name.removeprefix(path) for name in over]
            leak = _leak(each, inner, False)
            if leak > 0 and _leak(each, inner, True, len(turned) == len(inner) > 0) == 0:
                name = next(iter(over), called[0] if called else "")
                what = over.get(name, "positions")
                what = "the positions" if what == "positions" else "the batch"
                yield Finding(
                    "norm over positions",
                    subject.at(name),
                    f"its statistics are over {what} of a causal model: the last token changes what earlier "
                    f"positions give by {leak:.2g} (by 0 with a norm of each token)",
                    "normalise the last axis alone: nn.LayerNorm(width), or mean(-1, keepdim=True)",
                )


class _EachToken(TorchFunctionMode):
    """LayerNorm over the last axis alone."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        shape = args[1] if len(args) > 1 else (kwargs or {}).get("normalized_shape")
        if func is torch.nn.functional.layer_norm and shape is not None and len(shape) > 1:
            return func(args[0], args[0].shape[-1:])
        return func(*args, **(kwargs or {}))


def _tokens_of(each: placement.StackTrace) -> int | None:
    """The number of tokens that the stream had, if it is not that of its channels: a norm of so many reads a
    stream that was turned."""
    shape, where = each.shape, each.stream
    if len(shape) != 3 or where is None:
        return None
    tokens = shape[1 if where.axis == -1 else 2]
    return tokens if tokens != where.width else None


def _leak(
    each: placement.StackTrace, inner: list[str], each_token: bool, left_out: bool = False
) -> float:
    """How much the last token changes what a block gives at earlier positions, over the size of that. The
    norms `inner` are of each token then, or left out."""
    assert each.stream is not None
    axis = -2 if each.stream.axis == -1 else -1

    def prepare(block: nn.Module) -> None:
        for name in inner:
            norm = block.get_submodule(name)
            norm.train()
            if left_out:
                norm.forward = lambda x: x
            elif each_token:
                norm.forward = lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:])

    def changed(x: Tensor) -> Tensor:
        x = x.clone()
        x.select(axis, -1).add_(3.0).mul_(-2.0)
        return x

    def run(change: Callable[[Tensor], Tensor]) -> Tensor | None:
        if not each_token:
            return _block_output(each, 0, change, prepare)
        with _EachToken():
            return _block_output(each, 0, change, prepare)

    first, second = run(lambda x: x), run(changed)
    if first is None or second is None or first.ndim < 3 or first.shape[axis] < 2:
        return 0.0
    apart = (first - second).narrow(axis, 0, first.shape[axis] - 1).abs().max()
    relative = float(apart / first.abs().mean())
    return relative if relative > 1e-6 else 0.0


def _narrow(subject: Subject) -> Iterator[Finding]:
    """Norms of so few channels that only signs are left."""
    for name, norm in subject.traced.norms.items():
        if norm.over in ("token", "group") and norm.power == 0 and norm.width <= 1 + norm.centres:
            left = "0" if norm.centres and norm.width == 1 else "1 or -1"
            yield Finding(
                "two channels",
                subject.at(name),
                f"its statistics are over {norm.width} channel{'s' * (norm.width > 1)}: before its scale "
                f"every output is {left}, whatever the size of the input",
                "let one statistic read many channels, as nn.LayerNorm(width) does",
            )


def _overflow(subject: Subject) -> Iterator[Finding]:
    """Norms whose squares overflow in float16."""
    for name, norm in _token_norms(subject):
        module = subject.modules[name]
        if torch.float16 not in (subject.dtype_of(module), subject.dtype):
            continue
        hit = norms.overflow(module, norm.width)
        if hit is not None:
            size, answer = hit
            what = f"{answer:.3g}" if math.isfinite(answer) else "NaN or inf"
            yield Finding(
                "squares overflow",
                subject.coded(name),
                f"its squares overflow in float16 above |x| = {size}: such a token becomes {what}",
                "widen before squaring, x.float().pow(2), and narrow the result",
            )


def _eps(subject: Subject) -> Iterator[Finding]:
    """Norms whose eps is lost in the dtype, or stands outside of the root."""
    for name, norm in _token_norms(subject):
        module = subject.modules[name]
        dtype = subject.dtype if hasattr(subject.model, "config") else subject.dtype_of(module)
        if (said := norms.at_zeros(module, norm.width, dtype)) != "":
            kind = str(dtype).removeprefix("torch.")
            lost = f"its eps is lost in {kind}"
            lost += "" if "gives" in said else " or stands outside of the root"
            yield Finding(
                "eps too small",
                subject.coded(name),
                f"{lost}: {said}",
                "compute it in float32 with an eps of 1e-6 or more, inside of the root: "
                "rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)",
            )


def _token_norms(subject: Subject) -> Iterator[tuple[str, norms.ProbedNorm]]:
    """The norms of each token, one of those that compute the same."""
    seen: set[Any] = set()
    for name, norm in subject.traced.norms.items():
        if norm.over != "token" or norm.key is None or name not in subject.modules:
            continue
        kind = (type(subject.modules[name]), norm.eps, norm.width)
        if kind not in seen:
            seen.add(kind)
            yield name, norm


# DeepNorm.


def _deepnorm(subject: Subject) -> Iterator[Finding]:
    """DeepNorm's alpha of another depth or on the branch; and its beta (arXiv:2203.00555, table 1)."""
    for each, record in subject.stacks:
        if record.exact and record.placement not in (*POST, "deepnorm"):
            continue
        depth = each.layers
        right = (2 * depth) ** 0.25
        for block in each.blocks[:1]:
            sublayers = block.judged.sublayers if block.judged else []
            branches = []
            for sublayer in sublayers:
                if sublayer.norm_main is not None and len(sublayer.branches) == 1:
                    found = _alpha(subject, sublayer, depth, len(subject.stacks))
                    yield from [found] if found else []
                    skip = scheme_of.as_number(sublayer.skip_scaled)
                    branches += sublayer.branches if skip is not None and _near(skip, right) else []
            yield from _one_alpha(subject, sublayers, right)
            yield from _beta(subject, block, branches, depth)


def _one_alpha(subject: Subject, sublayers: list[Sublayer], right: float) -> Iterator[Finding]:
    """DeepNorm's alpha at one sublayer and not at another one."""
    skips = [scheme_of.as_number(s.skip_scaled) for s in sublayers if s.norm_main is not None]
    if len(skips) < len(sublayers) or not any(s is not None and _near(s, right) for s in skips):
        return
    for skip, sublayer in zip(skips, sublayers, strict=True):
        if skip is None and not sublayer.skip_scaled:
            yield Finding(
                "DeepNorm's alpha",
                subject.at(sublayer.norm_main or ""),
                f"this skip path is not multiplied by alpha, and another one is, by {right:.4g}",
                "write norm(alpha * x + f(x)) at each sublayer",
            )


def _alpha(subject: Subject, sublayer: Sublayer, depth: int, stacks: int) -> Finding | None:
    """DeepNorm's alpha on the branch, inverted, or of another depth than that of its stack."""
    skip = scheme_of.as_number(sublayer.skip_scaled)
    branch = scheme_of.as_number(sublayer.branches[0].scaled)
    right, where = (2 * depth) ** 0.25, subject.at(sublayer.norm_main or "")
    words = f"{depth} block{'s' * (depth != 1)} ha{'ve' if depth != 1 else 's'} {right:.4g}"
    if skip is None and branch is not None and branch > 1 and _blocks_of(branch) is not None:
        return Finding(
            "DeepNorm's alpha",
            where,
            f"{branch:.4g} stands on the branch, where DeepNorm has it on the skip path: "
            "the branch grows with depth instead of the stream",
            "write norm(alpha * x + f(x))",
        )
    if skip is None or branch is not None or skip == 1 or _near(skip, right):
        return None
    if stacks > 1:  # the encoder and the decoder have constants of both depths
        return None
    of = _blocks_of(skip)
    if _near(skip, 1 / right):
        said = f"alpha {skip:.4g} is inverted: {words}"
    elif of is not None:
        said = f"alpha {skip:.4g} is that of {of} blocks, {words}"
    elif skip > 1:
        said = f"alpha {skip:.4g} is that of no number of blocks, {words}"
    else:
        return None
    return Finding("DeepNorm's alpha", where, said, "let alpha be (2 * blocks) ** 0.25")


def _near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-3)


def _blocks_of(alpha: float) -> int | None:
    """The number of blocks, up to 200, that DeepNorm gives this alpha."""
    blocks = round(alpha**4 / 2)
    return blocks if 1 <= blocks <= 200 and _near((2 * blocks) ** 0.25, alpha) else None


APART = 1.5
"""How many times larger or smaller than Xavier's times beta a matrix may start: PyTorch's own initial values
are 1.4 times that of 4 blocks."""


def _beta(
    subject: Subject, block: placement.BlockTrace, branches: list[Branch], depth: int
) -> Iterator[Finding]:
    """Initial values of a model that was not trained yet, against Xavier's times beta."""
    scales = [
        subject.parameters[f"{path}.{norm.scale}"]
        for path, norm in subject.traced.norms.items()
        if norm.gain == "gamma" and f"{path}.{norm.scale}" in subject.parameters
    ]
    if not scales or any(p.is_meta or bool((p != 1).any()) for p in scales):
        return  # it was trained, or has no values
    beta = (8 * depth) ** -0.25
    off: dict[str, float] = {}
    matrices = [one for branch in branches for one in _scaled_by_beta(subject, block, branch)]
    for name, p in matrices:
        usual = (2 / sum(p.shape)) ** 0.5
        ratio = float(p.detach().float().std()) / usual / beta
        if ratio > 0 and not 1 / APART < ratio < APART:
            off[name] = ratio
    groups = [[n for n in off if off[n] > 1], [n for n in off if off[n] < 1]]
    for names in filter(None, groups):
        ratio = math.exp(sum(math.log(off[n]) for n in names) / len(names))
        much = f"{ratio:.2g} times larger" if ratio > 1 else f"{1 / ratio:.2g} times smaller"
        yield Finding(
            "DeepNorm's beta",
            names[0],
            f"{', '.join(n.removesuffix('.weight') for n in names)} start {much} than beta = (8L)^-1/4 = "
            f"{beta:.3g} says (Xavier's size times beta)",
            "xavier_normal_(weight, gain=beta) for values, attention's output and both FFN matrices, gain 1 "
            "for queries and keys",
        )


def _scaled_by_beta(
    subject: Subject, block: placement.BlockTrace, branch: Branch
) -> Iterator[tuple[str, Tensor]]:
    """The matrices of a branch that DeepNorm makes smaller: of an FFN all, of attention the values' and the
    last one."""
    if branch.root is None:
        return
    parts = [*sources(branch.root, placement.is_state)]
    named = {block.weights[id(s)]: s for s in parts if id(s) in block.weights}
    if branch.role == "mlp":
        every = [(name, subject.parameters.get(name)) for name in named]
        yield from ((name, p) for name, p in every if p is not None and p.ndim == 2)
        return
    values = next((s for s in map(_values, parts) if s is not None), None)
    last = next((s for s in parts if id(s) in block.weights), None)
    taken = {
        block.weights[id(s)] for s in (values, last) if s is not None and id(s) in block.weights
    }
    for name in sorted(taken):
        p = subject.parameters.get(name)
        if p is not None and p.ndim == 2:
            rows = p.shape[1]
            fused = p.shape[0] == 3 * rows
            yield (f"{name}[{2 * rows}:]", p[2 * rows :]) if fused else (name, p)


def _values(symbol: Symbol) -> Symbol | None:
    """The product with a matrix that the values of an attention come from."""
    if not isinstance(symbol, Made) or symbol.by != "attention" or len(symbol.of) < 2:
        return None
    left, right = symbol.of[0], symbol.of[-1]
    weighs = any(isinstance(s, Made) and s.by == "softmax" for s in sources(left))
    if len(symbol.of) != 3 and not weighs:
        return None
    return next((s for s in sources(right) if isinstance(s, Made) and s.by == "linear"), None)


# Norms around the stack.


def _final(subject: Subject) -> Iterator[Finding]:
    """A placement that has a final norm, without one, where nothing else reads the end of its last block."""
    for each, record in subject.stacks:
        if record.placement is None or record.final_norm is not None or each.goes_on or each.alone:
            continue
        key = "pre" if record.placement == "pre_nofinal" else record.placement
        if SCHEMES[key].final_norm:
            yield Finding(
                "final norm missing",
                record.path,
                f"{SCHEMES.label(key)} without a final norm: the stream leaves the last block "
                f"unnormalised, and what reads it grows with it{_grown(each)}",
                "put a norm between the last block and what reads it, a head or a decoder",
            )


def _grown(each: placement.StackTrace) -> str:
    """How large a stream of RMS 4 leaves the last block, in words."""
    y = _block_output(each, len(each.blocks) - 1, lambda x: 4 * x)
    if y is None:
        return ""
    return f" (a stream of RMS 4 leaves it with RMS {float(y.float().square().mean().sqrt()):.2g})"


def _in_a_row(subject: Subject) -> Iterator[Finding]:
    """A norm of a norm's result, unless all is exactly as in a placement of the catalogue."""
    for each, record in subject.stacks:
        if record.exact and record.placement != "pre_nofinal":
            continue
        pairs = [next(_nested(block.result), None) for block in each.blocks]
        # A norm of the embedding may stand in the first block.
        if pairs[-1] is not None and (pairs[0] is not None or len(pairs) == 1):
            outer, inner = pairs[-1] if pairs[0] is None else pairs[0]
            said = f"two norms in a row, {outer} on the output of {inner}"
            yield Finding("two norms in a row", subject.at(outer), said, "leave one of them out")


def _nested(symbol: Symbol) -> Iterator[tuple[str, str]]:
    """Norms on norms that nothing else reads, without a gain between them."""
    every = [part for part in sources(symbol) if not isinstance(part, Viewed)]
    for part in every:
        if isinstance(part, Normed) and isinstance(below := bare(part.of), Normed):
            readers = [each for each in every if any(bare(of) is below for of in read_by(each))]
            if len(readers) == 1:
                yield part.name, below.name


def _post_depth(subject: Subject) -> Iterator[Finding]:
    """Post-LN deeper than the shipped map of depths and rates has measured, or than where it trained."""
    for _, record in subject.stacks:
        if record.placement not in POST:
            continue
        deepest, trained = _measured()
        if record.blocks > deepest:
            said = f"is outside of the map measured here, which ends at {deepest}"
        elif record.blocks > trained:
            said = f"in the map measured here trained at no learning rate above {trained} blocks"
        else:
            continue
        yield Finding(
            "deep Post-LN",
            record.path,
            f"Post-LN with {record.blocks} blocks {said} (small models, see the page Maps)",
            "warm the learning rate up, or move the norm (normviz.move)",
        )


def _measured() -> tuple[int, int]:
    """The deepest Post-LN of the shipped map of depth and rate, and the deepest that learned."""
    depths, learned = {0}, {0}
    for key in ("torch", "xavier"):
        for depth in sorted({cell.config.depth for cell in cells(key, scheme="post")}):
            depths.add(depth)
            outcome = measured(key, "post", depth=depth)
            if outcome is not None and outcome.trained:
                learned.add(depth)
    return max(depths), max(learned)


# Gains and scales.


def _two_factors(subject: Subject) -> Iterator[Finding]:
    """A gain on the branch where a matrix of the block also starts at 1 / sqrt(2L) of the median one."""
    for each, record in subject.stacks:
        judged = each.blocks[0].judged
        if judged is None or not any(b.scaled for s in judged.sublayers for b in s.branches):
            continue
        parameters = [(n, p) for n, p in each.stack.blocks[0].named_parameters() if p.ndim == 2]
        if len(parameters) < 3 or any(p.is_meta for _, p in parameters):
            continue
        sizes = {n: float(p.detach().float().std()) for n, p in parameters}
        usual = sorted(sizes.values())[len(sizes) // 2]
        small = usual / (2 * record.blocks) ** 0.5
        hit = [n for n, size in sizes.items() if small > 0 and abs(size / small - 1) < NEAR]
        if hit and record.blocks > 1:
            yield Finding(
                "branches made smaller twice",
                each.stack.inside(0) + hit[0],
                f"its branches have a gain, and {hit[0]} also starts at 1/sqrt(2L) of the other matrices, "
                f"as in GPT-2 ({sizes[hit[0]]:.3g} of {usual:.3g}): branches are made smaller twice",
                "leave one of the two out",
            )


MOST = 0.5
"""Share of a block's matrices from which it counts as training: adapters are less."""


def _frozen(subject: Subject) -> Iterator[Finding]:
    """Frozen scales where the matrices around them train."""
    held: list[str] = []
    for path, norm in subject.traced.norms.items():
        name = f"{path}.{norm.scale}"
        if name not in subject.parameters or subject.parameters[name].requires_grad:
            continue
        home = subject.model.get_submodule(path.rpartition(".")[0])
        around = home if stack.matrices(home) else subject.model
        around = next(
            (b for e, _ in subject.stacks for n, b in enumerate(e.stack.blocks)
             if path.startswith(e.stack.inside(n))), around,
        )  # fmt: skip
        every = [p for p in around.parameters() if p.ndim >= 2]
        if sum(p.numel() for p in every if p.requires_grad) > MOST * sum(p.numel() for p in every):
            held.append(name)
    if held:
        yield Finding(
            "frozen scale",
            held[0],
            f"the scale of {_norms(held)} is frozen while matrices train",
            "requires_grad_(True) for it, or leave the scale out",
        )


def _decayed(subject: Subject) -> Iterator[Finding]:
    """Scales that weight decay pulls to 0 where no matrix can make up for it: on the stream, after a branch,
    and of queries and keys."""
    groups = {
        id(p): group
        for group in subject.groups
        for p in group["params"]
        if float(group.get("weight_decay", 0.0)) > 0
    }
    harmful = {
        name: slot
        for each, _ in subject.stacks
        for block in each.blocks
        for name, slot, _ in (_slots(block) if block.judged else ())
        if slot in ("norm_main", "norm_out", "enters")
    } | dict.fromkeys(subject.queries, "query and key")
    pulled = [
        name for name in harmful
        if (norm := subject.traced.norms.get(name)) is not None and norm.gain in ("gamma", "number")
        and id(subject.parameters.get(f"{name}.{norm.scale}")) in groups
    ]  # fmt: skip
    if pulled:
        norm = subject.traced.norms[pulled[0]]
        group = groups[id(subject.parameters[f"{pulled[0]}.{norm.scale}"])]
        rate, decay = float(group["lr"]), float(group["weight_decay"])
        steps = (
            f" (by half in {math.log(2) / rate / decay:,.0f} steps at this rate)" if rate else ""
        )
        place = {"norm_out": "after a branch", "query and key": "on queries and keys"}
        yield Finding(
            "scale decayed",
            f"{pulled[0]}.{norm.scale}",
            f"weight decay pulls the scale of {_norms(pulled)} to 0{steps}: "
            f"{place.get(harmful[pulled[0]], 'on the stream')} no matrix makes up for it",
            "put the scales of norms into a group with weight_decay=0",
        )


def _norms(names: list[str]) -> str:
    return f"{len(names)} norm{'s' * (len(names) > 1)}"


CHECKS: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
    _unused, _dropped, _shared, _twice, _overwritten, _size, _positions, _deepnorm, _final,
    _overflow, _eps, _decayed, _frozen, _narrow, _in_a_row, _post_depth, _two_factors,
)  # fmt: skip
"""All checks, in the order in which their findings are given."""
