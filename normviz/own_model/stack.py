"""The stacks of blocks of a PyTorch model, and the stream that passes through them.

A stack is a list of modules with at least two children of one class or of a repeating pattern, each with
two or more matrices and a norm; where a model has no such list, one with less counts. The stream is the
tensor that leaves a block and enters the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

LISTS = (nn.ModuleList, nn.Sequential)
STAGE = 2 / 3
"""A list whose children hold this share of their matrices in lists of blocks is a list of stages."""


class StackNotFound(ValueError):
    """The model has no stack of blocks that can be told; the message is one sentence."""


@dataclass(frozen=True)
class Stack:
    """A list of blocks: its path in the model (`model.layers`), the blocks, first to last, and the name of
    each in the list, often its number.

    With `single`, one module that is read as a whole: one block, or code that goes through its sublayers
    itself. The path is that module's, empty for the model itself, and its name is empty.
    """

    path: str
    blocks: tuple[nn.Module, ...]
    names: tuple[str, ...]
    single: bool = False

    def block_path(self, number: int) -> str:
        """The path of a block in the model."""
        return ".".join(filter(None, (self.path, self.names[number])))

    def inside(self, number: int) -> str:
        """What the paths of a block's modules begin with."""
        path = self.block_path(number)
        return f"{path}." if path else ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the blocks' classes, each once."""
        return tuple(dict.fromkeys(type(block).__name__ for block in self.blocks))

    @property
    def parameters(self) -> int:
        """The number of parameters of all blocks, shared ones once."""
        every = {id(p): p.numel() for block in self.blocks for p in block.parameters()}
        return sum(every.values())


def find_stacks(model: nn.Module, blocks: str | None = None) -> tuple[Stack, ...]:
    """The outermost stacks of a model, in its own order: two for an encoder and a decoder.

    `blocks` is the path of the list of blocks where it is known, such as "model.layers".
    Raises StackNotFound.
    """
    if blocks is not None:
        return (_named(model, blocks),)
    for enough, needs_norm, least in ((2, True, 2), (2, False, 2), (2, True, 1), (1, True, 2)):
        if isinstance(model, LISTS):
            whole = _children("", model)
            if _holds_blocks(whole, enough, needs_norm, least):
                return (whole,)
        stacks = [*_candidates(model, enough, needs_norm, least=least)]
        if stacks:
            return tuple(stacks)
    if matrices(model) and has_norm_shape(model):
        return (Stack("", (model,), ("",), True),)
    raise StackNotFound(
        f"{type(model).__name__} has no list of blocks (a ModuleList or Sequential of two or more modules of "
        "one class, with matrices and a norm each), and is no block with a norm: give a model or a block "
        "that has norms as modules"
    )


def loops_of(model: nn.Module, stacks: Sequence[Stack]) -> tuple[Stack, ...]:
    """The modules that hold the lists of stacks, to be read as a whole."""
    holders = dict.fromkeys(each.path.rpartition(".")[0] for each in stacks if not each.single)
    return tuple(Stack(path, (model.get_submodule(path),), ("",), True) for path in holders)


def main_stack(stacks: Sequence[Stack]) -> Stack:
    """The stack with most parameters; of equals the last one, a decoder."""
    return max(reversed(stacks), key=lambda stack: stack.parameters)


def _named(model: nn.Module, path: str) -> Stack:
    """The list of blocks at a path. Raises StackNotFound."""
    try:
        holder = model.get_submodule(path)
    except AttributeError:
        lists = [
            name
            for name, module in model.named_modules()
            if isinstance(module, LISTS) and len(module)
        ]
        raise StackNotFound(
            f"blocks={path!r} is not in {type(model).__name__}: its lists are "
            f"{', '.join(lists[:8]) or 'none'}"
        ) from None
    found = _children(path, holder)
    if not isinstance(holder, LISTS) or not found.blocks:
        raise StackNotFound(
            f"blocks={path!r} is a {type(holder).__name__}: give a ModuleList or Sequential with blocks in it"
        )
    return found


def _children(path: str, holder: nn.Module) -> Stack:
    """The children of the module at a path as a stack."""
    children = dict(holder.named_children())
    return Stack(path, tuple(children.values()), tuple(children))


def _candidates(
    model: nn.Module, enough: int, needs_norm: bool, path: str = "", least: int = 2
) -> Iterator[Stack]:
    """Stacks below a module, without those inside of a block."""
    for name, child in model.named_children():
        here = f"{path}.{name}" if path else name
        stack = _children(here, child) if isinstance(child, LISTS) else None
        if stack is None or not _holds_blocks(stack, enough, needs_norm, least):
            yield from _candidates(child, enough, needs_norm, here, least)
        else:
            yield stack


def _holds_blocks(stack: Stack, enough: int, needs_norm: bool, least: int) -> bool:
    return _is_stack(stack, enough, needs_norm, least) and not _has_stages(stack, enough)


def _is_stack(stack: Stack, enough: int, needs_norm: bool, least: int) -> bool:
    """Whether a list holds blocks: they repeat, and each has matrices and (if needed) a norm."""
    count = Counter(type(block) for block in stack.blocks)
    repeats = len(stack.blocks) == 1 or len(count) <= (len(stack.blocks) + 1) // 2
    return (
        len(stack.blocks) >= enough
        and repeats
        and all(matrices(block) >= least for block in stack.blocks)
        and (not needs_norm or all(has_norm_shape(block) for block in stack.blocks))
    )


def _has_stages(stack: Stack, enough: int) -> bool:
    """Whether the children of a list are stages, which hold the blocks in lists of their own."""
    held = [sum(matrices(each) for each in _inner_blocks(block, enough)) for block in stack.blocks]
    every = sum(matrices(block) for block in stack.blocks)
    return sum(held) >= STAGE * every


def _inner_blocks(module: nn.Module, enough: int) -> list[nn.Module]:
    return [block for stack in _candidates(module, min(enough, 2), True) for block in stack.blocks]


def matrices(module: nn.Module) -> int:
    """The number of parameters of a module that have two or more dimensions."""
    return sum(parameter.ndim >= 2 for parameter in module.parameters())


def has_norm_shape(module: nn.Module) -> bool:
    """Whether a module has a leaf that can be a norm by its shape: it learns vectors or numbers and no
    matrix. What a leaf computes is told by `norms`."""
    return any(
        not any(True for _ in leaf.children())
        and leaf is not module
        and any(True for _ in leaf.parameters())
        and all(parameter.ndim <= 1 for parameter in leaf.parameters())
        for leaf in module.modules()
    )


# The stream: which argument of a block it enters as, and which part of the result it leaves as.


@dataclass(frozen=True)
class Call:
    """One call of a block: its arguments and its result."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any


@dataclass(frozen=True)
class Stream:
    """Where the stream is in a call of a block.

    argument  position or name of the argument that it enters as
    part      index or key in the block's result that it leaves as; None if it is the result itself
    width     the number of its channels
    verified  whether what leaves a block is the tensor that enters the next one
    others    how many more tensors pass so from block to block and change on their way
    rivals    how many of those have its width: they may be streams too
    axis      which axis has the channels: the last, -1, or 1
    """

    argument: int | str
    part: int | str | None
    width: int
    verified: bool
    others: int = 0
    rivals: int = 0
    axis: int = -1

    def entering(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
        """The stream among the arguments of a call; None where it is not there."""
        stream = (
            kwargs.get(self.argument)
            if isinstance(self.argument, str)
            else args[self.argument]
            if self.argument < len(args)
            else None
        )
        return stream if isinstance(stream, Tensor) else None

    def leaving(self, result: Any) -> Tensor | None:
        """The stream in the result of a call; None where it is not there."""
        return dict(results(result)).get(self.part)


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[int | str, Tensor]]:
    """The floating tensors among the arguments of a call, with position or name."""
    yield from ((k, v) for k, v in (*enumerate(args), *kwargs.items()) if _floats(v))


def results(result: Any) -> Iterator[tuple[int | str | None, Tensor]]:
    """The floating tensors in the result of a call, with index or key."""
    if isinstance(result, Tensor):
        yield None, result
    elif isinstance(result, Mapping):
        yield from ((k, v) for k, v in result.items() if _floats(v))
    elif isinstance(result, list | tuple):
        yield from ((i, v) for i, v in enumerate(result) if _floats(v))


def _floats(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim >= 2


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in a value, lists and tables in it too."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from tensors(part)


def channel_axis(module: nn.Module, shape: Sequence[int]) -> int:
    """Which axis of a tensor has the channels, by the sizes of a module's vectors and matrices: 1, or the
    last, -1."""
    every = [p.shape for p in module.parameters()]
    sizes = {size.numel() for size in every}
    sides = {n for size in every if len(size) == 2 for n in size}
    if len(shape) < 3 or shape[1] not in sizes:
        return -1
    ranks = {len(size) for size in every} - {0, 1}
    convolves = bool(ranks) and min(ranks) > 2  # so that channels come second
    return 1 if convolves or shape[-1] not in sizes | sides else -1


def find_stream(calls: Sequence[Call], block: nn.Module) -> Stream | None:
    """The stream in the calls of a stack's blocks in one forward pass, first to last; None if no argument
    of a block has the shape of a part of its result. `block` is one of them."""
    candidates: dict[tuple[int | str, int | str | None], Tensor] = {}
    for before, after in pairwise(calls):
        inputs = [id(tensor) for _, tensor in arguments(before.args, before.kwargs)]
        for place, entering in arguments(after.args, after.kwargs):
            for part, leaving in results(before.result):
                if (
                    is_same(leaving, entering)
                    and id(leaving) not in inputs
                    and _shaped(before, place, leaving)
                ):
                    candidates.setdefault((place, part), entering)
    links = [_of(block, *where, tensor, True) for where, tensor in candidates.items()]
    links = [
        link for n, link in enumerate(links) if link.argument not in [x.argument for x in links[:n]]
    ]
    if links:
        first = links[0]
        rivals = sum(link.width == first.width for link in links[1:])
        return replace(first, others=len(links) - 1, rivals=rivals)
    for call in calls[:1]:
        for place, entering in arguments(call.args, call.kwargs):
            for part, leaving in results(call.result):
                if leaving.shape == entering.shape:
                    return _of(block, place, part, entering, False)
    return None


def _of(
    block: nn.Module, place: int | str, part: int | str | None, tensor: Tensor, verified: bool
) -> Stream:
    axis = channel_axis(block, tensor.shape)
    return Stream(place, part, tensor.shape[axis], verified, axis=axis)


def _shaped(call: Call, place: int | str, leaving: Tensor) -> bool:
    """Whether a block's result has the shape of the argument at a place."""
    argument = dict(arguments(call.args, call.kwargs)).get(place)
    return argument is not None and argument.shape == leaving.shape


def is_same(tensor: Tensor, other: Tensor) -> bool:
    """Whether two tensors are one, or the same values of one memory in another shape."""
    if tensor is other:
        return True
    if tensor.numel() != other.numel() or tensor.is_meta or other.is_meta:
        return False
    return tensor.data_ptr() == other.data_ptr() and tensor.is_contiguous() == other.is_contiguous()
