"""The same model with its norms in other places.

Attention and FFN stay the modules that they are. Each block keeps its own forward pass, which calls them as
before; what enters a branch and what is added to the stream are taken from it, and computed as the record of
the new placement says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from ..catalog import SCHEMES
from ..catalog.scheme import BRANCHES, Gain, Place, Scheme, Slots
from . import placement, scheme_of, source, stack
from .anatomy import trace_model
from .norms import ProbedNorm
from .symbols import Symbol, bare, sources

SLOTS = ("norm_fork", "norm_in", "norm_out", "norm_skip", "norm_main")
GAINS = ("stream_gain", "input_gain", "skip_gain", "branch_gain", "main_gain", "block_gain")
KNOWN = {*SLOTS, *GAINS, "gamma_in", "gamma_out"}
"""Slots of a record that a model of one's own can get; the others reach into its branches."""


class MoveError(ValueError):
    """The norms of this model can't be moved there; the message is one sentence."""


def movable() -> tuple[str, ...]:
    """Keys of the placements that a model can be moved to."""
    return tuple(s.key for s in SCHEMES if _refused(s) == "")


def move(
    model: nn.Module,
    to: str,
    *,
    inputs: Any = None,
    blocks: str | None = None,
    norm: Callable[[int], nn.Module] | None = None,
) -> nn.Module:
    """A copy of a model with its norms placed as in the catalogue's scheme `to`.

    Attention and FFN keep their modules and weights. A norm is taken over where the new placement has one in
    the same slot; elsewhere there are new ones of the same class, or what `norm` makes of a width. Gains are
    those of the scheme's record. Weights are not rescaled. Moving back gives the norms back. `inputs` and
    `blocks` are as for `inspect`. Raises MoveError.
    """
    scheme = _scheme(to)
    copy = deepcopy(model)
    moved = [module for module in copy.modules() if isinstance(module, Rewired)]
    if not moved:
        traced = _traced(copy, inputs, blocks)
        named = scheme_of.scheme_of(traced.each)
        if named.key is None:
            raise MoveError(f"the placement of {type(model).__name__} can't be told: {named.why}")
        if to == named.key or to in named.alike:
            return copy
        moved = _rewire(copy, traced, SCHEMES[named.key])
    for number, rewired in enumerate(moved):
        rewired.place(scheme, number + 1, len(moved), norm)
    _ends(copy, moved, scheme, norm)
    return copy


def _scheme(key: str) -> Scheme:
    """The scheme of a key that a model can be moved to. Raises MoveError."""
    if key not in SCHEMES:
        raise MoveError(f"to={key!r} is no placement: choose one of {', '.join(movable())}")
    if why := _refused(SCHEMES[key]):
        raise MoveError(f"to={key!r} {why}: choose one of {', '.join(movable())}")
    return SCHEMES[key]


def _refused(scheme: Scheme) -> str:
    """Why no model is moved to a scheme; empty if one can be."""
    if scheme.streams != "one":
        return "has another stream than one tensor"
    if scheme.norm is not None or scheme.constraint != "none":
        return "has rules for the weights or a norm of its own"
    for block in (1, 2, 6, 12):
        for branch in BRANCHES:
            slots = scheme.slots(Place(block, 12, branch))
            for slot in fields(Slots):
                if slot.name not in KNOWN and getattr(slots, slot.name) != slot.default:
                    return f"changes the inside of its branches ({slot.name})"
            if any(getattr(slots, name).ramp for name in GAINS):
                return "has a gain that changes while it trains"
    return ""


# Where the parts of a block are.


@dataclass(frozen=True)
class Part:
    """One sublayer of a block: paths in it of the norms, of the modules that the branch starts with, and
    of the module whose result is the branch."""

    slots: Mapping[str, str]
    entries: tuple[str, ...]
    exit: str


@dataclass(frozen=True)
class Found:
    """The stack that is moved, and the trace that it is in."""

    each: placement.StackTrace
    trace: placement.Trace


def _traced(model: nn.Module, inputs: Any, blocks: str | None) -> Found:
    """The only stack of a model. Raises MoveError."""
    try:
        traced = trace_model(model, source.inputs_of(model, inputs), blocks)
    except ValueError as error:
        raise MoveError(str(error)) from error
    stacks = [stack_trace for stack_trace in traced.stacks if stack_trace.blocks]
    if len(stacks) != 1 or len(stacks[0].blocks) != len(stacks[0].stack.blocks):
        paths = ", ".join(stack_trace.stack.path for stack_trace in stacks)
        raise MoveError(
            f"{type(model).__name__} has {len(stacks)} stacks that ran, or blocks that run more than once "
            f'({paths}): name one with blocks="..."'
        )
    if any(p.is_meta for p in model.parameters()):
        raise MoveError("a model on the meta device has no weights to move: make it with weights")
    return Found(stacks[0], traced)


def parts_of(block: placement.BlockTrace, start: str) -> list[Part]:
    """The sublayers of a traced block, whose path is `start`. Raises MoveError."""
    if block.judged is None:
        raise MoveError(f"block {block.number} is not decided: {block.why}")
    sublayers = block.judged.sublayers
    if len(sublayers) != 2 or any(len(sublayer.branches) != 1 for sublayer in sublayers):
        raise MoveError(
            f"block {block.number} has {len(sublayers)} sublayers, with "
            f"{max(len(sublayer.branches) for sublayer in sublayers)} branches each at most: only attention "
            "and then FFN can be moved"
        )
    parts = []
    for sublayer in sublayers:
        (branch,) = sublayer.branches
        named = {
            "norm_in": branch.norm_in,
            "norm_out": branch.norm_out,
            "norm_main": sublayer.norm_main,
        }
        slots = {slot: _inside(name, start) for slot, name in named.items() if name}
        made = block.made.get(id(branch.root), [])
        if not made:
            raise MoveError(
                f"what block {block.number} adds to the stream is the result of no module"
            )
        entries = (branch.norm_in,) if branch.norm_in else _entries(block, branch.root)
        if not entries:
            raise MoveError(f"block {block.number} has a branch that no module starts")
        parts.append(
            Part(slots, tuple(_inside(name, start) for name in entries), _inside(made[-1], start))
        )
    return parts


def _inside(name: str, start: str) -> str:
    """A path relative to the block. Raises MoveError for a norm that is no module of it."""
    inside = f"{start}." if start else ""
    if not name.startswith(inside) or "(" in name:
        raise MoveError(f"{name} is no module of the block {start}, so it can't be moved")
    return name.removeprefix(inside)


def _entries(block: placement.BlockTrace, root: Symbol | None) -> tuple[str, ...]:
    """The outermost modules that read the stream and make the branch of it."""
    parts = set[int]()  # of the branch, back to the stream
    if root is not None:
        parts = {id(bare(part)) for part in sources(root, placement.is_state)}
    names = [name for name, symbol in block.reads if id(bare(symbol)) in parts]
    return tuple(
        n for n in dict.fromkeys(names) if not any(n.startswith(f"{other}.") for other in names)
    )


# A block with other places for its norms.


class Rewired(nn.Module):
    """The norms and gains of a block, and its stream while the block runs.

    norms, gains, constants   those of the placement, by sublayer and slot as in "0_norm_in"
    spare      the norms without a slot, so that moving back gives them back
    told       what the model's own norms compute, for new ones
    first_scheme   key of the model's own placement
    end_path, starts_path   the model's own norms at the ends of the stack, where it has some
    starts_normed   whether the model has a norm on its embedding
    """

    def __init__(
        self, block: nn.Module, stream: stack.Stream, told: ProbedNorm | None, scheme: Scheme
    ) -> None:
        super().__init__()
        vars(self)["block"] = block  # not a child: it is the parent
        self.stream, self.told, self.first_scheme = stream, told, scheme.key
        self.end_path: str | None = None
        self.starts_path: str | None = None
        self.starts_normed = False
        self.norms, self.gains = nn.ModuleDict(), nn.ParameterDict()
        self.constants: dict[str, float] = {}
        self.spare: dict[str, nn.Module] = {}
        self.state: Tensor | None = None
        self.entered: Tensor | None = None
        self.given: dict[int, Tensor] = {}
        self.fork: Tensor | None = None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Rewired:
        """Norms without a slot also follow the model to another dtype or device."""
        for norm in self.spare.values():
            norm._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def place(
        self, scheme: Scheme, block: int, depth: int, make: Callable[[int], nn.Module] | None
    ) -> None:
        """Give the block the slots of a scheme."""
        self.spare |= {name: module for name, module in self.norms.items() if name not in ENDS}
        end_norms = {name: module for name, module in self.norms.items() if name in ENDS}
        self.norms, self.gains, self.constants = nn.ModuleDict(end_norms), nn.ParameterDict(), {}
        for number, branch in enumerate(BRANCHES):
            slots = scheme.slots(Place(block, depth, branch))
            for slot in SLOTS:
                if getattr(slots, slot):
                    first = {"norm_in": slots.gamma_in, "norm_out": slots.gamma_out}.get(slot, 1.0)
                    name = f"{number}_{slot}"
                    self.norms[name] = self.spare.pop(name, None) or self.new(make, first)
            for slot in GAINS:
                self._gain(f"{number}_{slot}", getattr(slots, slot))

    def like(self) -> Tensor:
        """A tensor of the dtype and the device that new norms and gains get: those of the block."""
        floating = (p for p in vars(self)["block"].parameters() if p.is_floating_point())
        return next(floating, torch.empty(0))

    def new(self, make: Callable[[int], nn.Module] | None, first: float = 1.0) -> nn.Module:
        """A new norm of the model's class, with fresh values. Raises MoveError."""
        if make is not None:
            return make(self.stream.width).to(self.like())
        every = [*self.norms.values(), *self.spare.values()]
        if not every or self.told is None:
            raise MoveError(
                "the model has no norm on its stream to copy: give norm=torch.nn.LayerNorm"
            )
        copy = deepcopy(every[0])
        scale, gain = self.told.scale, self.told.gain
        if gain in ("number", "1 + number"):
            first /= self.told.size  # a ScaleNorm's number is a length, sqrt(d) of a unit RMS
        with torch.no_grad():
            for name, p in copy.named_parameters():
                if name == scale:
                    p.fill_(first - gain.startswith("1 +"))
                elif p.numel() > 1:
                    p.zero_()
        return copy

    def _gain(self, name: str, gain: Gain) -> None:
        if gain.is_zero if name.endswith("block_gain") else gain.is_one:
            return
        if not gain.learned:
            self.constants[name] = gain.value
        elif gain.learned == "block" and name.startswith("1"):
            self.gains[name] = self.gains[f"0{name[1:]}"]
        else:
            size = self.stream.width if gain.learned == "channel" else 1
            value = gain.value * (self.stream.width**0.5 if gain.unit == "sqrt(d)" else 1)
            self.gains[name] = nn.Parameter(self.like().new_full((size,), value))

    # While the block runs.

    def begin(self, x: Tensor) -> None:
        """The stream enters the block."""
        self.state, self.entered, self.given = x, x, {}

    def enter(self, number: int, seen: Tensor) -> Tensor:
        """What a branch reads, in the shape that the block's own code gave."""
        if number not in self.given:
            assert self.state is not None
            u = self._times(f"{number}_stream_gain", self.state)
            u = self._norm(f"{number}_norm_fork", u)
            self.fork = u
            given = self._norm(f"{number}_norm_in", u)
            self.given[number] = self._times(f"{number}_input_gain", given)
        return self.given[number].reshape(seen.shape)

    def leave(self, number: int, f: Tensor) -> None:
        """A branch's result is added to the stream."""
        skip = self.fork
        assert skip is not None
        assert self.entered is not None
        f = self._norm(f"{number}_norm_out", f.reshape(skip.shape))
        f = self._times(f"{number}_branch_gain", f)
        name = f"{number}_skip_gain"
        if self.constants.get(name) == 0.0:
            x = f
        else:
            x = self._times(name, self._norm(f"{number}_norm_skip", skip)) + f
        name = f"{number}_block_gain"
        if self.constants.get(name, 0.0) != 0.0 or name in self.gains:
            x = x + self._times(name, self.entered)
        x = self._norm(f"{number}_norm_main", x)
        self.state = self._times(f"{number}_main_gain", x)

    def end(self) -> Tensor:
        """The stream leaves the block."""
        x = self.state
        assert x is not None
        self.state, self.entered, self.given, self.fork = None, None, {}, None
        return x

    def before(self, _: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """A hook of the first block: the norm on the embedding."""
        x = self.stream.entering(args, kwargs)
        if EMBED not in self.norms or x is None:
            return None
        at = self.stream.argument
        if isinstance(at, str):
            return args, {**kwargs, at: self.norms[EMBED](x)}
        return tuple(
            self.norms[EMBED](x) if n == at else argument for n, argument in enumerate(args)
        ), kwargs

    def after(self, _: nn.Module, args: tuple, result: Any) -> Any:
        """A hook of the last block: the norm before the head."""
        x = self.stream.leaving(result)
        if FINAL not in self.norms or x is None:
            return None
        return _with(result, self.stream.part, self.norms[FINAL](x))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        return self.norms[name](x) if name in self.norms else x

    def _times(self, name: str, x: Tensor) -> Tensor:
        if name in self.gains:
            return x * self.gains[name]
        value = self.constants.get(name, 1.0)
        return x if value == 1.0 else x * value


EMBED, FINAL = "embed_norm", "final_norm"
ENDS = (EMBED, FINAL)


class _Absent(nn.Identity):
    """Nothing, where a norm was; asked for its settings it has those of the norm."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        vars(self)["norm"] = norm  # not a child: it has no place here

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("norm"), name)


class _Wrapped(nn.Module):
    """A module of a branch: asked for its settings it has those of the module."""

    inner: nn.Module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)


class _Entry(_Wrapped):
    """What a branch starts with: it reads the rewired stream instead of what it is given."""

    def __init__(self, inner: nn.Module, owner: Rewired, number: int) -> None:
        super().__init__()
        self.inner, self.number = inner, number
        vars(self)["owner"] = owner  # not a child: it is a child of the block

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        _, given = next(stack.arguments(args, kwargs))
        x = vars(self)["owner"].enter(self.number, given)
        args = tuple(x if each is given else each for each in args)  # query, key and value
        kwargs = {name: x if each is given else each for name, each in kwargs.items()}
        return self.inner(*args, **kwargs)


class _Exit(_Wrapped):
    """The module whose result is a branch: its result also goes to the rewired stream."""

    def __init__(self, inner: nn.Module, owner: Rewired, number: int) -> None:
        super().__init__()
        self.inner, self.number = inner, number
        vars(self)["owner"] = owner

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        result = self.inner(*args, **kwargs)
        vars(self)["owner"].leave(self.number, next(t for _, t in stack.results(result)))
        return result


def _rewire(model: nn.Module, traced: Found, scheme: Scheme) -> list[Rewired]:
    """Patch all blocks of a stack, with the placement that they have."""
    each = traced.each
    assert each.stream is not None
    parts = [
        parts_of(trace, each.stack.block_path(number)) for number, trace in enumerate(each.blocks)
    ]
    made = []
    for number, block in enumerate(each.stack.blocks):
        first = next((n for p in parts[number] for n in p.slots.values()), None)
        told = traced.trace.norms.get(f"{each.stack.inside(number)}{first}")
        rewired = Rewired(block, each.stream, told, scheme)
        for sublayer, part in enumerate(parts[number]):
            for slot, path in part.slots.items():
                rewired.spare[f"{sublayer}_{slot}"] = block.get_submodule(path)
        for sublayer, part in enumerate(parts[number]):
            _patch(block, part, rewired, sublayer)
        block.rewired = rewired
        block.forward = MethodType(_forward, block)
        made.append(rewired)
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False  # its blocks take plain tensors
    modules = {name for name, _ in model.named_modules()}
    made[-1].end_path = each.final_norm if each.final_norm in modules else None
    made[0].starts_normed = each.embed_norm is not None
    made[0].starts_path = (
        each.embed_norm if scheme.embed_norm and each.embed_norm in modules else None
    )
    each.stack.blocks[0].register_forward_pre_hook(made[0].before, with_kwargs=True)
    each.stack.blocks[-1].register_forward_hook(made[-1].after)
    return made


def _patch(block: nn.Module, part: Part, rewired: Rewired, number: int) -> None:
    """Put the entries and the exit of a sublayer in place, and nothing where its norms were."""
    for path in part.entries:
        inner = block.get_submodule(path)
        if part.slots.get("norm_in") == path:
            inner = _Absent(inner)
        elif path == part.exit:
            inner = _Exit(inner, rewired, number)
        block.set_submodule(path, _Entry(inner, rewired, number))
    for slot, path in part.slots.items():
        if slot != "norm_in":
            block.set_submodule(path, _Absent(block.get_submodule(path)))
    if part.exit not in part.entries:
        block.set_submodule(part.exit, _Exit(block.get_submodule(part.exit), rewired, number))


def _forward(block: nn.Module, *args: Any, **kwargs: Any) -> Any:
    """The block's own forward pass, whose stream is that of its `Rewired`."""
    rewired: Any = block.rewired
    x = rewired.stream.entering(args, kwargs)
    if x is None:
        x = next(t for _, t in stack.arguments(args, kwargs))
    rewired.begin(x)
    with placement.no_shortcut():
        result = type(block).forward(block, *args, **kwargs)
    return _with(result, rewired.stream.part, rewired.end())


def _with(result: Any, part: Any, x: Tensor) -> Any:
    """A result with another stream in it."""
    if part is None:
        return x
    if isinstance(result, dict):
        result[part] = x
        return result
    return type(result)(x if n == part else output for n, output in enumerate(result))


def _ends(
    model: nn.Module, moved: list[Rewired], scheme: Scheme, make: Callable[[int], nn.Module] | None
) -> None:
    """The norm before the head and the norm on the embedding."""
    first, last = moved[0], moved[-1]
    if first.starts_path is not None:
        _own(model, first, first.starts_path, scheme.embed_norm)
    else:
        _end(first, EMBED, scheme.embed_norm and not first.starts_normed, make)
    if last.end_path is None:
        _end(last, FINAL, scheme.final_norm, make)
    else:
        wanted = scheme.final_norm or scheme.key == last.first_scheme  # the model had both
        _own(model, last, last.end_path, wanted)


def _own(model: nn.Module, rewired: Rewired, path: str, wanted: bool) -> None:
    """A norm at an end of the stack that the model itself has."""
    if wanted and path in rewired.spare:
        model.set_submodule(path, rewired.spare.pop(path))
    elif not wanted and path not in rewired.spare:
        rewired.spare[path] = model.get_submodule(path)
        model.set_submodule(path, nn.Identity())


def _end(
    rewired: Rewired, name: str, wanted: bool, make: Callable[[int], nn.Module] | None
) -> None:
    """A norm at an end of the stack that the model itself has not."""
    if wanted and name not in rewired.norms:
        rewired.norms[name] = rewired.spare.pop(name, None) or rewired.new(make)
    elif not wanted and name in rewired.norms:
        rewired.spare[name] = rewired.norms.pop(name)
