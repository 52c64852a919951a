"""What a forward pass is followed on: symbols for the stream and for what was done to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Tensor:
    """A symbol for a tensor."""


@dataclass(frozen=True)
class Stream(Tensor):
    """What enters a layer."""


@dataclass(frozen=True)
class Norm(Tensor):
    """A norm of something; `name` is the path of the module, `kind` says which norm it is."""

    name: str
    kind: str
    of: Tensor


@dataclass(frozen=True)
class Made(Tensor):
    """Anything else that was computed from some tensors."""

    of: tuple[Tensor, ...]


@dataclass(frozen=True)
class Sum(Tensor):
    """first + second."""

    first: Tensor
    second: Tensor


@dataclass(frozen=True)
class Scaled(Tensor):
    """A tensor times a number or a vector; `by` as it stands in the code."""

    of: Tensor
    by: str


@dataclass(frozen=True)
class Viewed(Tensor):
    """The same numbers in another shape, as heads are."""

    of: Tensor


@dataclass(frozen=True)
class Unknown:
    """A value that is not a tensor and that nothing is known of."""

    text: str = ""


@dataclass
class Config:
    """A model's configuration: the defaults of its class."""

    defaults: dict[str, object]


@dataclass
class Module:
    """A module of the file, with the attributes that its __init__ gave it."""

    kind: str
    path: str
    attributes: dict[str, object] = field(default_factory=dict)


@dataclass
class Outside:
    """A module of PyTorch or of the library's shared code: name, arguments as text."""

    kind: str
    path: str
    arguments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Many:
    """Several values of which each is this one: chunks of a tensor."""

    each: object


def bare(tensor: Tensor) -> Tensor:
    """Without changes of shape around it."""
    while isinstance(tensor, Viewed):
        tensor = tensor.of
    return tensor


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two symbols are one but for shapes."""
    a, b = bare(a), bare(b)
    if a is b:
        return True
    if isinstance(a, Norm) and isinstance(b, Norm):
        return a.name == b.name and same(a.of, b.of)
    if isinstance(a, Sum) and isinstance(b, Sum):
        return same(a.first, b.first) and same(a.second, b.second)
    return isinstance(a, Stream) and isinstance(b, Stream)


def tensors(values: Any) -> tuple[Tensor, ...]:
    """All tensors among values, also inside lists."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, Many):
            found += tensors([value.each])
        elif isinstance(value, list | tuple):
            found += tensors(value)
    return tuple(found)
